/* Makes system calls to trigger their tracepoints; the argument is their number. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    for (long left = count > 1 ? atol(words[1]) : 1000000; left > 0; left--) syscall(SYS_getppid);
    return 0;
}
