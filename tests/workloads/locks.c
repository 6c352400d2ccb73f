// Waits of one thread for a mutex, a condition variable or a semaphore (the argument), which another holds for known times.
//
// Prints a line per wait: address of the object and the nanoseconds that the waiting thread measured.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 110

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int ready;
static atomic_int turn;
static int kind;
static long waits[ROUNDS];

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

// Handshakes without futexes.
static void await_turn(int number) {
    while (atomic_load(&turn) != number)
        usleep(100);
}

__attribute__((noinline)) long wait_for_mutex(void) {
    long begin = now();
    pthread_mutex_lock(&mutex);
    long end = now();
    pthread_mutex_unlock(&mutex);
    return end - begin;
}

__attribute__((noinline)) long wait_for_cond(void) {
    pthread_mutex_lock(&guard);
    long begin = now();
    while (!ready)
        pthread_cond_wait(&cond, &guard);
    long end = now();
    ready = 0;
    pthread_mutex_unlock(&guard);
    return end - begin;
}

__attribute__((noinline)) long wait_for_semaphore(void) {
    long begin = now();
    sem_wait(&semaphore);
    return now() - begin;
}

static void *waiter(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "waiter");
    long (*functions[3])(void) = {wait_for_mutex, wait_for_cond, wait_for_semaphore};
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(1);
        atomic_store(&turn, 2);
        waits[round] = functions[kind]();
        atomic_store(&turn, 0);
    }
    return NULL;
}

static void release(int round) {
    // 4 to 12 ms from the begin of the wait.
    int hold = 4000 + (round * 37 % ROUNDS) * 8000 / ROUNDS;
    await_turn(0);
    if (kind == 0)
        pthread_mutex_lock(&mutex);
    atomic_store(&turn, 1);
    await_turn(2);
    usleep(hold);
    if (kind == 0)
        pthread_mutex_unlock(&mutex);
    if (kind == 1) {
        pthread_mutex_lock(&guard);
        ready = 1;
        pthread_mutex_unlock(&guard);
        pthread_cond_signal(&cond);
    }
    if (kind == 2)
        sem_post(&semaphore);
}

int main(int count, char **words) {
    pthread_t thread;
    const char *names[3] = {"mutex", "cond", "semaphore"};
    void *objects[3] = {&mutex, &cond, &semaphore};
    while (kind < 2 && (count < 2 || strcmp(words[1], names[kind])))
        kind++;
    sem_init(&semaphore, 0, 0);
    pthread_create(&thread, NULL, waiter, NULL);
    pthread_setname_np(pthread_self(), "holder");
    for (int round = 0; round < ROUNDS; round++)
        release(round);
    pthread_join(thread, NULL);
    for (int round = 0; round < ROUNDS; round++)
        printf("%p %ld\n", objects[kind], waits[round]);
    return 0;
}
