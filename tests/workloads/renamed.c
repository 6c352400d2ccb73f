/* A process whose first thread only waits, and a thread that changes its name. */
#define _GNU_SOURCE
#include <pthread.h>

static volatile long sum;

static void burn(void)
{
	for (long i = 0; i < 100000000; i++)
		sum += i;
}

static void *work(void *unused)
{
	pthread_setname_np(pthread_self(), "z before");
	burn();
	pthread_setname_np(pthread_self(), "a after");
	burn();
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, 0, work, 0);
	pthread_join(thread, 0);
	return 0;
}
