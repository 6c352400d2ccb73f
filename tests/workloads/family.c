// Processes and threads that start and exit: named threads, forks, a fork that executes another program.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static void spin(unsigned long rounds)
{
	for (volatile unsigned long i = 0; i < rounds; i++)
		;
}

static void *thread(void *name)
{
	spin(1000000);
	prctl(PR_SET_NAME, (const char *)name);
	spin(1000000);
	return NULL;
}

int main(void)
{
	pthread_t threads[3];
	static char *names[] = { "first thread", "a", "fifteen letters" };

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, thread, names[i]);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 6; i++) {
		pid_t child = fork();
		if (child == 0) {
			spin(1000000);
			if (fork() == 0)
				spin(1000000);
			else if (i % 2)
				execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; /bin/true", NULL);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
