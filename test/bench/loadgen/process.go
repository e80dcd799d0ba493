package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// CPU and memory of a process and everything below it, from /proc.
func tree(root int) []int {
	kids := map[int][]int{}
	ents, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, e := range ents {
		b, err := os.ReadFile(e)
		if err != nil {
			continue
		}
		i := bytes.LastIndexByte(b, ')')
		f := strings.Fields(string(b[i+1:]))
		p, _ := strconv.Atoi(strings.Split(e, "/")[2])
		pp, _ := strconv.Atoi(f[1])
		kids[pp] = append(kids[pp], p)
	}
	out := []int{root}
	for i := 0; i < len(out); i++ {
		out = append(out, kids[out[i]]...)
	}
	return out
}
func cpu(root int) (us float64, rssKB, pssKB int64, procs int) {
	for _, p := range tree(root) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
		if err != nil {
			continue
		}
		procs++
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		for _, k := range []int{11, 12, 13, 14} { // utime stime cutime cstime
			v, _ := strconv.ParseFloat(f[k], 64)
			us += v * 1e4
		}
		r, _ := strconv.ParseInt(f[21], 10, 64)
		rssKB += r * 4
	}
	return
}
