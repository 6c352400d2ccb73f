/* A USDT probe, written without sys/sdt.h; prints the recorded values while the probe is enabled. */
#include <stdio.h>

/* The semaphore: the kernel counts the users of the probe here. */
__attribute__((section(".probes"))) volatile unsigned short demo_tick_semaphore;

static void tick(int number, long *place)
{
	__asm__ volatile("990: nop\n"
			 ".pushsection .note.stapsdt,\"?\",\"note\"\n"
			 ".balign 4\n"
			 ".4byte 992f-991f,994f-993f,3\n"
			 "991: .asciz \"stapsdt\"\n"
			 "992: .balign 4\n"
			 "993: .8byte 990b\n"
			 ".8byte _.stapsdt.base\n"
			 ".8byte demo_tick_semaphore\n"
			 ".asciz \"demo\"\n"
			 ".asciz \"tick\"\n"
			 ".asciz \"-4@%0 8@(%1) 4@$9\"\n"
			 "994: .balign 4\n"
			 ".popsection\n"
			 ".ifndef _.stapsdt.base\n"
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
			 ".weak _.stapsdt.base\n"
			 ".hidden _.stapsdt.base\n"
			 "_.stapsdt.base: .space 1\n"
			 ".size _.stapsdt.base,1\n"
			 ".popsection\n"
			 ".endif\n"
			 :
			 : "r"(number), "r"(place)
			 : "memory");
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		long value = 40 + i;
		if (demo_tick_semaphore)
			printf("tick: arg1=%d arg2=%ld arg3=9\n", i - 1, value);
		tick(i - 1, &value);
	}
	return 0;
}
