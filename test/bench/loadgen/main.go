// loadgen: one HTTP/1.1 load generator for gateway benchmarks.
//
//	closed loop: -c connections, each sends the next request when the last answer is complete.
//	open loop:   -rate R sends on a fixed schedule over up to -c connections; latency is kept both from the
//	             scheduled instant (coordinated-omission free) and from the moment of the write.
//
// Every answer is read whole (content-length, chunked or close) and checked: status 200 and, with -expect, a substring.
// -mcp: per connection initialize + notifications/initialized, then tools/call with a fresh id each time.
// -pid: sums utime+stime and RSS of the process tree below that pid round the measured window.
// SIGTERM ends the measured time early. Prints one JSON object.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type hdrs []string

func (h *hdrs) String() string     { return strings.Join(*h, ",") }
func (h *hdrs) Set(s string) error { *h = append(*h, s); return nil }

var (
	target  = flag.String("url", "http://127.0.0.1:18100/", "target")
	method  = flag.String("method", "GET", "method")
	bodyF   = flag.String("body", "", "request body, or @file")
	expect  = flag.String("expect", "", "substring each answer must have")
	conns   = flag.Int("c", 16, "connections")
	rate    = flag.Float64("rate", 0, "open-loop requests per second (0: closed loop)")
	dur     = flag.Duration("d", 5*time.Second, "measured time")
	warm    = flag.Duration("warm", time.Second, "warm-up time, same load, not counted")
	pid     = flag.Int("pid", 0, "root pid of the process tree to account")
	mcp     = flag.Bool("mcp", false, "MCP tools/call sessions")
	mcpList = flag.Bool("mcp-list", false, "list tools in place of calling one")
	mcpTool = flag.String("tool", "echo", "MCP tool name")
	mcpVer  = flag.String("mcp-version", "2025-06-18", "MCP protocol version to ask for")
	label   = flag.String("label", "", "label copied into the output")
	timeout = flag.Duration("timeout", 30*time.Second, "per-answer timeout")
	show    = flag.Bool("show", false, "send one request, print the answer, exit")
	H       hdrs
)

func main() {
	flag.Var(&H, "H", "header 'name: value' (repeatable)")
	flag.Parse()
	early := make(chan os.Signal, 1)
	signal.Notify(early, syscall.SIGTERM)
	var err error
	u, err = url.Parse(*target)
	if err != nil {
		panic(err)
	}
	if h := u.Hostname(); h != "127.0.0.1" && h != "localhost" && h != "::1" {
		fmt.Fprintln(os.Stderr, "loadgen only sends to loopback")
		os.Exit(2)
	}
	var body []byte
	if strings.HasPrefix(*bodyF, "@") {
		body, err = os.ReadFile((*bodyF)[1:])
		if err != nil {
			panic(err)
		}
	} else {
		body = []byte(*bodyF)
	}
	if *mcp {
		*method = "POST"
	}
	static := request(body, nil)
	exp := []byte(*expect)

	mk := func() (*conn, error) {
		k, err := dial()
		if err == nil && *mcp {
			err = k.initMCP()
		}
		return k, err
	}
	reqFor := func(k *conn) []byte {
		if !*mcp {
			return static
		}
		k.id++
		if *mcpList {
			return request([]byte(`{"jsonrpc":"2.0","id":`+strconv.Itoa(k.id)+`,"method":"tools/list"}`), k.mcpH())
		}
		return request([]byte(`{"jsonrpc":"2.0","id":`+strconv.Itoa(k.id)+`,"method":"tools/call","params":{"name":"`+*mcpTool+`","arguments":{"text":"hello from the load generator"}}}`), k.mcpH())
	}
	if *show {
		k, err := mk()
		if err != nil {
			fmt.Println("ERR", err)
			os.Exit(1)
		}
		st, _, _, _, err := k.do(reqFor(k))
		fmt.Println(st, err)
		fmt.Println(string(k.buf))
		return
	}

	var measuring atomic.Bool
	var stop atomic.Bool
	var ok, bad, ioerr, dropped, bytesIn atomic.Int64
	var firstErr atomic.Value
	type res struct{ svc, sched, ttfb hist }
	results := make([]*res, *conns)
	var wg sync.WaitGroup
	ch := make(chan time.Time, 1<<16)
	for i := 0; i < *conns; i++ {
		r := &res{}
		results[i] = r
		wg.Add(1)
		go func() {
			defer wg.Done()
			var k *conn
			defer func() {
				if k != nil {
					k.c.Close()
				}
			}()
			for !stop.Load() {
				if k == nil {
					var err error
					if k, err = mk(); err != nil {
						k = nil
						if measuring.Load() {
							ioerr.Add(1)
							firstErr.CompareAndSwap(nil, err.Error())
						}
						time.Sleep(20 * time.Millisecond)
						continue
					}
				}
				var sched time.Time
				if *rate > 0 {
					var more bool
					if sched, more = <-ch; !more {
						return
					}
				}
				req := reqFor(k)
				t0 := time.Now()
				st, _, first, closed, err := k.do(req)
				t1 := time.Now()
				if err != nil {
					if measuring.Load() {
						ioerr.Add(1)
						firstErr.CompareAndSwap(nil, err.Error())
					}
					k.c.Close()
					k = nil
					continue
				}
				good := st == 200 && (len(exp) == 0 || bytes.Contains(k.buf, exp))
				if measuring.Load() { // completions inside the window: unbiased at steady state
					if good {
						ok.Add(1)
						bytesIn.Add(int64(len(k.buf)))
						r.svc.add(t1.Sub(t0))
						r.ttfb.add(first.Sub(t0))
						if *rate > 0 {
							r.sched.add(t1.Sub(sched))
						}
					} else {
						bad.Add(1)
						firstErr.CompareAndSwap(nil, fmt.Sprintf("%d %.300s", st, k.buf))
					}
				}
				if closed {
					k.c.Close()
					k = nil
				}
			}
		}()
	}
	if *rate > 0 {
		go func() {
			per := time.Duration(float64(time.Second) / *rate)
			next := time.Now()
			for !stop.Load() {
				now := time.Now()
				if d := next.Sub(now); d > 0 {
					time.Sleep(d)
					continue
				}
				select {
				case ch <- next:
				default:
					dropped.Add(1)
				}
				next = next.Add(per)
			}
			close(ch)
		}()
	}
	time.Sleep(*warm)
	var c0 float64
	if *pid > 0 {
		c0, _, _, _ = cpu(*pid)
	}
	measuring.Store(true)
	t0 := time.Now()
	var rssPeak int64
measured:
	for left := *dur; left > 0; left = *dur - time.Since(t0) {
		if left > 250*time.Millisecond {
			left = 250 * time.Millisecond
		}
		select {
		case <-early:
			break measured
		case <-time.After(left):
		}
		if *pid > 0 && time.Since(t0) < *dur {
			if _, r, _, _ := cpu(*pid); r > rssPeak {
				rssPeak = r
			}
		}
	}
	measuring.Store(false)
	el := time.Since(t0)
	out := map[string]any{"label": *label, "mode": "closed", "conns": *conns}
	n := ok.Load()
	if *pid > 0 {
		c1, rss, _, procs := cpu(*pid)
		if rss > rssPeak {
			rssPeak = rss
		}
		out["cpu_us_per_req"] = math.Round(10*(c1-c0)/math.Max(1, float64(n+bad.Load()))) / 10
		out["cpu_cores"] = math.Round(1000*(c1-c0)/1e6/el.Seconds()) / 1000
		out["rss_mb"] = math.Round(float64(rssPeak)/102.4) / 10
		out["procs"] = procs
	}
	stop.Store(true)
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
	}
	var svc, sched, ttfb hist
	for _, r := range results {
		svc.merge(&r.svc)
		sched.merge(&r.sched)
		ttfb.merge(&r.ttfb)
	}
	if *rate > 0 {
		out["mode"] = "open"
		out["rate"] = *rate
		out["sched_us"] = sched.out()
		out["dropped"] = dropped.Load()
	}
	out["ok"] = n
	out["bad"] = bad.Load()
	out["ioerr"] = ioerr.Load()
	out["rps"] = math.Round(float64(n)/el.Seconds()*10) / 10
	out["mb_s"] = math.Round(float64(bytesIn.Load())/el.Seconds()/1e4) / 100
	out["svc_us"] = svc.out()
	out["ttfb_us"] = ttfb.out()
	if e := firstErr.Load(); e != nil {
		out["first_error"] = e
	}
	keys := make([]string, 0)
	for k := range out {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	b, _ := json.Marshal(out)
	fmt.Println(string(b))
}
