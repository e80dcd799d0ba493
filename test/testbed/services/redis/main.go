// redis serves the part of Redis that counters need, for machines without redis-server. It prints its address on the
// first line and ends when its input does.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/alicebob/miniredis/v2"
)

func main() {
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(server.Addr())
	io.Copy(io.Discard, os.Stdin)
}
