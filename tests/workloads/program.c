/* The ./program of the examples: computes, allocates, connects to a closed port, and has the USDT probe program:step. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void step(void)
{
	__asm__ volatile("990: nop\n"
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"
			 ".balign 4\n"
			 ".4byte 992f-991f,994f-993f,3\n"
			 "991: .asciz \"stapsdt\"\n"
			 "992: .balign 4\n"
			 "993: .8byte 990b,0,0\n"
			 ".asciz \"program\"\n"
			 ".asciz \"step\"\n"
			 ".asciz \"\"\n"
			 "994: .balign 4\n"
			 ".popsection\n");
}

__attribute__((noinline)) unsigned compute(unsigned rounds)
{
	volatile unsigned sum = 0;
	for (unsigned i = 0; i < rounds; i++)
		sum += i ^ (sum >> 3);
	return sum;
}

static void knock(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(1)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		step();
	close(fd);
}

/* Runs for so many milliseconds of CPU time, 200 if no number is given. */
int main(int count, char **words)
{
	long limit = count > 1 ? atol(words[1]) : 200;

	while (clock() * 1000 / CLOCKS_PER_SEC < limit) {
		volatile char *memory = malloc(64);

		memory[0] = (char)compute(200000);
		free((void *)memory);
		knock();
		step();
		usleep(1000);
	}
	return 0;
}
