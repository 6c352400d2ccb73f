// Threads that wait for mutexes of each other, as many as the first argument says (1 to 3), of the kind of the second argument: plain,
// recursive, robust, pi, timed. With the second argument "chain" the last thread holds its mutex and sleeps instead: no deadlock.
//
// Prints "ready" when all threads have their first mutex; the main thread joins the first thread.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST 3

pthread_mutex_t locks[MOST];
static int count;
static const char *kind;
static atomic_int holding;

__attribute__((noinline)) int take_second_lock(long number) {
    pthread_mutex_t *lock = &locks[(number + 1) % count];
    if (!strcmp(kind, "timed")) {
        struct timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += 1000;
        return pthread_mutex_timedlock(lock, &end) + 1;
    }
    return pthread_mutex_lock(lock) + 1;
}

static void *work(void *argument) {
    long number = (long)argument;
    char name[16];
    snprintf(name, sizeof name, "worker-%ld", number);
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&locks[number]);
    atomic_fetch_add(&holding, 1);
    while (atomic_load(&holding) < count)
        usleep(1000);
    if (!strcmp(kind, "chain") && number == count - 1)
        sleep(1000);
    return (void *)(long)take_second_lock(number);
}

int main(int words, char **word) {
    pthread_t threads[MOST];
    pthread_mutexattr_t attributes;
    count = words > 1 ? atoi(word[1]) : 2;
    kind = words > 2 ? word[2] : "plain";
    if (count < 1 || count > MOST)
        return 2;
    pthread_mutexattr_init(&attributes);
    if (!strcmp(kind, "recursive"))
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    if (!strcmp(kind, "robust"))
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (!strcmp(kind, "pi"))
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    for (int number = 0; number < count; number++)
        pthread_mutex_init(&locks[number], &attributes);
    for (long number = 0; number < count; number++)
        pthread_create(&threads[number], NULL, work, (void *)number);
    while (atomic_load(&holding) < count)
        usleep(1000);
    usleep(100000);
    puts("ready");
    fflush(stdout);
    pthread_join(threads[0], NULL);
    return 0;
}
