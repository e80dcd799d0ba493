package main

import (
	"math"
	"time"
)

// Log-linear histogram, 1 us to about 1 h, error below 1 %.
const sub = 128

type hist struct {
	n   [64 * sub]int64
	cnt int64
	sum float64
	max int64
}

func idx(us int64) int {
	if us < sub {
		return int(us)
	}
	e := 63 - leading(uint64(us)) - 7
	return (e+1)*sub + int(us>>uint(e)) - sub
}
func leading(x uint64) int {
	n := 0
	for i := 63; i >= 0; i-- {
		if x>>uint(i)&1 == 1 {
			return n
		}
		n++
	}
	return 64
}
func val(i int) float64 {
	if i < 2*sub {
		return float64(i)
	}
	e := i/sub - 1
	return float64((int64(i%sub)+sub)<<uint(e)) + float64(int64(1)<<uint(e))/2
}
func (h *hist) add(d time.Duration) {
	us := d.Microseconds()
	if us < 0 {
		us = 0
	}
	h.n[idx(us)]++
	h.cnt++
	h.sum += float64(us)
	if us > h.max {
		h.max = us
	}
}
func (h *hist) merge(o *hist) {
	for i := range o.n {
		h.n[i] += o.n[i]
	}
	h.cnt += o.cnt
	h.sum += o.sum
	if o.max > h.max {
		h.max = o.max
	}
}
func (h *hist) q(p float64) float64 {
	if h.cnt == 0 {
		return 0
	}
	t := int64(math.Ceil(p * float64(h.cnt)))
	var c int64
	for i, n := range h.n {
		c += n
		if c >= t {
			return val(i)
		}
	}
	return float64(h.max)
}
func (h *hist) out() map[string]float64 {
	m := 0.0
	if h.cnt > 0 {
		m = h.sum / float64(h.cnt)
	}
	return map[string]float64{"p10": h.q(.1), "p50": h.q(.5), "p90": h.q(.9), "p99": h.q(.99), "p999": h.q(.999), "mean": math.Round(m), "max": float64(h.max)}
}
