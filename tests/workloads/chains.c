// Threads and processes that wait for each other for known times. The first argument is
//   chain N    link-0 waits for link-1, which waits for link-2, and so on; the last of N threads holds its mutex for 300 ms
//   circle     two threads that wait for mutexes of each other, until both time out after 300 ms
//   rwlock     20 waits of 5 ms of the thread "reader", and as many of the thread "writer", for the thread "holder" that has a lock for writing
//   readers    20 waits of the thread "writer" for "holder", which has a lock for reading
//   busy       20 waits of the thread "waiter" for a mutex of "holder", which runs in burn_processor() for 5 ms of its own time each
//   shared     20 waits of 5 ms of a process for a mutex of another one, whose thread is named "holder"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 8
#define ROUNDS 20

pthread_mutex_t links[MOST] = {[0 ... MOST - 1] = PTHREAD_MUTEX_INITIALIZER};
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int count;
static atomic_int ready;
static atomic_int round_number;
static int for_reading;

static void name(const char *text, long number) {
    char full[16];
    strcpy(full, text);
    if (number >= 0) {
        full[strlen(text)] = '0' + number;
        full[strlen(text) + 1] = 0;
    }
    pthread_setname_np(pthread_self(), full);
}

static void await_value(atomic_int *variable, int value) {
    while (atomic_load(variable) < value)
        usleep(100);
}

__attribute__((noinline)) void hold_last_link(void) { usleep(300000); }

static void *chain_link(void *argument) {
    long number = (long)argument;
    name("link-", number);
    pthread_mutex_lock(&links[number]);
    // The last one first: each waits for a thread that waits already.
    atomic_fetch_add(&ready, 1);
    await_value(&ready, count);
    if (number == count - 1) {
        hold_last_link();
    } else {
        usleep((count - 1 - number) * 20000);
        pthread_mutex_lock(&links[number + 1]);
        pthread_mutex_unlock(&links[number + 1]);
    }
    pthread_mutex_unlock(&links[number]);
    return NULL;
}

static void *circle_link(void *argument) {
    long number = (long)argument;
    name("circle-", number);
    pthread_mutex_lock(&links[number]);
    atomic_fetch_add(&ready, 1);
    await_value(&ready, 2);
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 300000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    if (!pthread_mutex_timedlock(&links[1 - number], &end))
        pthread_mutex_unlock(&links[1 - number]);
    atomic_fetch_add(&ready, 1);
    await_value(&ready, 4);
    pthread_mutex_unlock(&links[number]);
    return NULL;
}

static void *reader(void *unused) {
    name("reader", -1);
    for (int round = 1; round <= ROUNDS; round++) {
        await_value(&round_number, round);
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        atomic_fetch_add(&ready, 1);
    }
    return unused;
}

static void *writer(void *unused) {
    name("writer", -1);
    for (int round = 1; round <= ROUNDS; round++) {
        await_value(&round_number, round);
        pthread_rwlock_wrlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        atomic_fetch_add(&ready, 1);
    }
    return unused;
}

static void read_write(int waiters) {
    pthread_t threads[2];
    name("holder", -1);
    pthread_create(&threads[0], NULL, writer, NULL);
    if (waiters > 1)
        pthread_create(&threads[1], NULL, reader, NULL);
    for (int round = 1; round <= ROUNDS; round++) {
        if (for_reading)
            pthread_rwlock_rdlock(&rwlock);
        else
            pthread_rwlock_wrlock(&rwlock);
        atomic_store(&round_number, round);
        usleep(5000);
        pthread_rwlock_unlock(&rwlock);
        await_value(&ready, round * waiters);
    }
    for (int thread = 0; thread < waiters; thread++)
        pthread_join(threads[thread], NULL);
}

static long own_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

__attribute__((noinline)) void burn_processor(void) {
    long end = own_time() + 5000000;
    volatile long count = 0;
    do
        for (int step = 0; step < 10000; step++)
            count += step;
    while (own_time() < end);
}

static void *waiter(void *unused) {
    name("waiter", -1);
    for (int round = 1; round <= ROUNDS; round++) {
        await_value(&round_number, round);
        pthread_mutex_lock(&links[0]);
        pthread_mutex_unlock(&links[0]);
        atomic_fetch_add(&ready, 1);
    }
    return unused;
}

__attribute__((noinline)) static void be_busy(void) {
    pthread_t thread;
    name("holder", -1);
    pthread_create(&thread, NULL, waiter, NULL);
    for (int round = 1; round <= ROUNDS; round++) {
        pthread_mutex_lock(&links[0]);
        atomic_store(&round_number, round);
        // The other thread waits from here on.
        usleep(1000);
        burn_processor();
        pthread_mutex_unlock(&links[0]);
        await_value(&ready, round);
    }
    pthread_join(thread, NULL);
}

struct shared {
    pthread_mutex_t mutex;
    atomic_int turn;
};

static void share(void) {
    struct shared *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &attributes);
    if (!fork()) {
        name("waiter", -1);
        for (int round = 0; round < ROUNDS; round++) {
            await_value(&shared->turn, 2 * round + 1);
            pthread_mutex_lock(&shared->mutex);
            pthread_mutex_unlock(&shared->mutex);
            atomic_store(&shared->turn, 2 * round + 2);
        }
        _exit(0);
    }
    name("holder", -1);
    for (int round = 0; round < ROUNDS; round++) {
        await_value(&shared->turn, 2 * round);
        pthread_mutex_lock(&shared->mutex);
        atomic_store(&shared->turn, 2 * round + 1);
        usleep(5000);
        pthread_mutex_unlock(&shared->mutex);
    }
    wait(NULL);
}

static void run_threads(void *(*function)(void *)) {
    pthread_t threads[MOST];
    for (long number = 0; number < count; number++)
        pthread_create(&threads[number], NULL, function, (void *)number);
    for (int number = 0; number < count; number++)
        pthread_join(threads[number], NULL);
}

int main(int words, char **word) {
    const char *kind = words > 1 ? word[1] : "";
    count = words > 2 ? atoi(word[2]) : 2;
    if (count < 1 || count > MOST)
        return 2;
    if (!strcmp(kind, "chain")) {
        run_threads(chain_link);
    } else if (!strcmp(kind, "circle")) {
        run_threads(circle_link);
    } else if (!strcmp(kind, "rwlock")) {
        read_write(2);
    } else if (!strcmp(kind, "readers")) {
        for_reading = 1;
        read_write(1);
    } else if (!strcmp(kind, "busy")) {
        be_busy();
    } else if (!strcmp(kind, "shared")) {
        share();
    } else {
        return 2;
    }
    return 0;
}
