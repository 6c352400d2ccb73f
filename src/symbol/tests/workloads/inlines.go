// Functions that Go inlines into each other, and those of its library.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"
)

type shape interface{ area() int }

type square struct{ side int }

func (s square) area() int { return times(s.side, s.side) }

func times(a, b int) int { return a * b }

func plus(a, b int) int { return times(a, 1) + b }

//go:noinline
func total(shapes []shape) (sum int) {
	for _, one := range shapes {
		sum = plus(sum, one.area())
	}
	return sum
}

func main() {
	words := strings.Fields(strings.Join(os.Args, " "))
	sort.Slice(words, func(i, j int) bool { return plus(len(words[i]), i) < plus(len(words[j]), j) })
	fmt.Println(words, total([]shape{square{len(words)}, square{plus(1, 2)}}))
}
