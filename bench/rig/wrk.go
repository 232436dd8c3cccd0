package rig

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	json "github.com/goccy/go-json"
)

// A Load describes the requests that wrk sends.
type Load struct {
	Paths []string // requested at random; a body after a space makes it a POST
	Rate  float64  // target rate, requests per second; 0 means unlimited
	Time  time.Duration
}

// A Result is the result of wrk. Latencies are in milliseconds.
type Result struct {
	Rate     float64 `json:"rate"` // requests per second
	Requests int     `json:"requests"`
	Errors   int     `json:"errors"` // missing answers, and answers other than 2xx and 3xx
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
}

//go:embed wrk.lua
var script []byte

// connections is the number of connections of wrk.
const connections = 50

// Details requests the details of lists as fast as the server answers.
func Details(lists []string) Load {
	paths := make([]string, len(lists))
	for i, list := range lists {
		paths[i] = "/api/v1/lists/" + list + "/details"
	}
	return Load{Paths: paths, Time: 5 * time.Second}
}

// Most measures the maximum rate of a server without errors.
func (l Load) Most(ctx context.Context, work, addr string) (Result, error) {
	result, err := l.Run(ctx, work, addr)
	if err == nil && result.Errors > 0 {
		err = fmt.Errorf("wrk: %d errors in %d requests to %s", result.Errors, result.Requests, addr)
	}
	return result, err
}

// Run sends the load to a server. work is a folder for temporary files.
func (l Load) Run(ctx context.Context, work, addr string) (Result, error) {
	results, err := l.Repeat(ctx, work, addr, 1)
	if err != nil {
		return Result{}, err
	}
	return results[0], nil
}

// Repeat sends the load several times, and returns each result.
func (l Load) Repeat(ctx context.Context, work, addr string, rounds int) ([]Result, error) {
	scriptFile, paths := filepath.Join(work, "wrk.lua"), filepath.Join(work, "wrk-paths")
	if err := os.WriteFile(scriptFile, script, 0o644); err != nil {
		return nil, err
	}
	if err := os.WriteFile(paths, []byte(strings.Join(l.Paths, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	wait, err := l.calibrate(ctx, addr, scriptFile, paths)
	if err != nil {
		return nil, err
	}
	results := make([]Result, rounds)
	for i := range results {
		if results[i], err = l.run(ctx, addr, scriptFile, paths, wait, l.Time); err != nil {
			return nil, err
		}
	}
	return results, nil
}

const calibrations = 3

// calibrate determines the pause of a connection between two requests, in milliseconds.
func (l Load) calibrate(ctx context.Context, addr, scriptFile, paths string) (wait float64, err error) {
	if l.Rate == 0 {
		return 0, nil
	}
	// wrk can only pause between the requests of a connection, so short runs find the pause for the
	// rate. If a server falls behind, it gets fewer requests; the result contains the actual rate.
	wait = 1000 * connections / l.Rate
	for range calibrations {
		first, err := l.run(ctx, addr, scriptFile, paths, wait, 3*time.Second)
		if err != nil {
			return 0, err
		}
		wait = max(0, wait-1000*connections/first.Rate+1000*connections/l.Rate)
	}
	return wait, nil
}

func (l Load) run(ctx context.Context, addr, scriptFile, paths string, wait float64, length time.Duration) (result Result, err error) {
	c := exec.CommandContext(ctx, "wrk", "-t2", "-c"+strconv.Itoa(connections), "-d"+strconv.Itoa(int(length.Seconds()))+"s",
		"-s", scriptFile, "http://"+addr)
	c.Env = append(os.Environ(), "WRK_PATHS="+paths, "WRK_WAIT="+strconv.FormatFloat(wait, 'f', 3, 64))
	output, err := c.CombinedOutput()
	if err != nil {
		return result, fmt.Errorf("wrk: %w\n%s", err, output)
	}
	_, text, ok := bytes.Cut(output, []byte("RESULT "))
	if !ok {
		return result, fmt.Errorf("wrk: no result in\n%s", output)
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return result, fmt.Errorf("wrk: %w in\n%s", err, output)
	}
	return result, nil
}
