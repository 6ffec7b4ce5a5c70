// Command allocate uses so many MiB of memory and ends.
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	held := make([][]byte, n)
	for i := range held {
		held[i] = make([]byte, 1<<20)
		for j := range held[i] {
			held[i][j] = 1
		}
	}
	fmt.Println(len(held), held[n-1][0])
}
