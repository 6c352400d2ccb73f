// Stacks of Go: goroutines, deep recursion on a stack that is moved as it grows, panics that are recovered, deferred
// functions, closures in the library, interfaces.
package main

import (
	"os"
	"sort"
	"strconv"
	"sync"
	"syscall"
)

var sink uint64

// Its variable gives it a frame, and so a frame pointer.
//
//go:noinline
func spin(seed uint64) uint64 {
	var sums [8]uint64
	for n := uint64(0); n < 20000; n++ {
		sums[n%8] = sums[(n+1)%8]*31 + seed
	}
	return sums[0]
}

// One function for each expected caller, so that nothing else is called from it.
//
//go:noinline
func burnLeaf() { sink += spin(1) }

//go:noinline
func burnDeep() { sink += spin(2) }

//go:noinline
func burnDeferred() { sink += spin(3) }

//go:noinline
func burnRecovered() { sink += spin(4) }

//go:noinline
func burnCompare() { sink += spin(5) }

//go:noinline
func burnWalker() { sink += spin(6) }

//go:noinline
func burnGoroutine() uint64 { return spin(7) }

//go:noinline
func deep(depth int) int {
	var room [256]byte
	room[depth%256] = byte(depth)
	if depth == 0 {
		burnDeep()
		return int(room[0])
	}
	return deep(depth-1) + int(room[depth%256])
}

// Runs while the panic passes.
func cleanUp() { burnDeferred() }

//go:noinline
func fails(depth int) {
	defer cleanUp()
	if depth == 0 {
		panic("on purpose")
	}
	fails(depth - 1)
	sink++
}

//go:noinline
func recovers() {
	defer func() {
		if recover() != nil {
			burnRecovered()
		}
	}()
	fails(3)
}

//go:noinline
func throughLibrary() {
	numbers := []int{3, 1, 2, 5, 4}
	sort.Slice(numbers, func(left, right int) bool {
		burnCompare()
		return numbers[left] < numbers[right]
	})
}

type walks interface{ walk(steps int) uint64 }

type walker struct{ next walks }

//go:noinline
func (w *walker) walk(steps int) uint64 {
	if steps == 0 {
		burnWalker()
		return 0
	}
	return w.next.walk(steps-1) + 1
}

//go:noinline
func inGoroutine(results chan<- uint64) { results <- burnGoroutine() }

//go:noinline
func withGoroutines() {
	results := make(chan uint64)
	var all sync.WaitGroup
	for n := 0; n < 2; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			inGoroutine(results)
		}()
	}
	sink += <-results + <-results
	all.Wait()
}

// CPU time, because a busy machine runs the program for less of the wall-clock time.
func milliseconds() int64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return (used.Utime.Nano() + used.Stime.Nano()) / 1e6
}

func main() {
	end := milliseconds() + 1000
	if len(os.Args) > 1 {
		if last, err := strconv.ParseInt(os.Args[1], 10, 64); err == nil {
			end += last - 1000
		}
	}
	round := &walker{}
	round.next = round
	for milliseconds() < end {
		burnLeaf()
		sink += uint64(deep(30))
		recovers()
		throughLibrary()
		sink += round.walk(5)
		withGoroutines()
	}
}
