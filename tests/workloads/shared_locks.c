// Two processes with locks in shared memory: "alpha" and a thread "beta-2" of its child "beta" each hold one and wait for that of the other.
//
// The first argument is the kind of the locks: plain, robust, pi or rwlock. Two more have plain mutexes: with "chain", and also with "pi", beta-2 holds its
// lock but does not wait; with "apart", beta has a PID namespace of its own.
//
// With a second argument, alpha holds beta's lock for 30 ms, as often as the number says, while beta itself waits: no deadlock. Otherwise prints
// "ready PID", where PID is beta's, when both have their first lock.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    pthread_mutex_t locks[2];
    pthread_rwlock_t rwlocks[2];
    atomic_int holding;
    // Of alpha_holds() and beta_waits(). 0: alpha may take beta's lock; 1: alpha holds it; 2: beta is about to wait for it.
    atomic_int turn;
};

static struct shared *shared;
static const char *kind;

__attribute__((noinline)) int take_lock(int number) {
    if (!strcmp(kind, "rwlock"))
        return pthread_rwlock_wrlock(&shared->rwlocks[number]) + 1;
    return pthread_mutex_lock(&shared->locks[number]) + 1;
}

static void wait_for_both(void) {
    atomic_fetch_add(&shared->holding, 1);
    while (atomic_load(&shared->holding) < 2)
        usleep(1000);
}

static void await_turn(int number) {
    while (atomic_load(&shared->turn) != number)
        usleep(200);
}

static void alpha_holds(int times) {
    for (int round = 0; round < times; round++) {
        await_turn(0);
        pthread_mutex_lock(&shared->locks[1]);
        atomic_store(&shared->turn, 1);
        await_turn(2);
        usleep(30000);
        pthread_mutex_unlock(&shared->locks[1]);
    }
}

static void beta_waits(int times) {
    for (int round = 0; round < times; round++) {
        await_turn(1);
        atomic_store(&shared->turn, 2);
        take_lock(1);
        pthread_mutex_unlock(&shared->locks[1]);
        atomic_store(&shared->turn, 0);
    }
}

static void *in_thread(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "beta-2");
    take_lock(1);
    wait_for_both();
    if (!strcmp(kind, "pi") || !strcmp(kind, "chain"))
        pause();
    take_lock(0);
    return NULL;
}

static void beta(int times) {
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "beta");
    if (times) {
        beta_waits(times);
        return;
    }
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
}

static void make_locks(void) {
    pthread_mutexattr_t attributes;
    pthread_rwlockattr_t rw_attributes;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        exit(3);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_rwlockattr_init(&rw_attributes);
    pthread_rwlockattr_setpshared(&rw_attributes, PTHREAD_PROCESS_SHARED);
    if (!strcmp(kind, "robust"))
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (!strcmp(kind, "pi"))
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    for (int number = 0; number < 2; number++) {
        pthread_mutex_init(&shared->locks[number], &attributes);
        pthread_rwlock_init(&shared->rwlocks[number], &rw_attributes);
    }
}

int main(int words, char **word) {
    kind = words > 1 ? word[1] : "plain";
    int times = words > 2 ? atoi(word[2]) : 0;
    make_locks();
    prctl(PR_SET_NAME, "alpha");
    if (!strcmp(kind, "apart") && unshare(CLONE_NEWPID))
        return 4;
    pid_t child = fork();
    if (child == 0) {
        beta(times);
        return 0;
    }
    if (times) {
        alpha_holds(times);
        waitpid(child, NULL, 0);
        return 0;
    }
    take_lock(0);
    wait_for_both();
    usleep(100000);
    printf("ready %d\n", child);
    fflush(stdout);
    take_lock(1);
    return 0;
}
