package live

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestEvery(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		interval time.Duration
		takes    []time.Duration
		errs     []error
		want     []time.Duration // start times of the calls
	}{
		"one after another":           {time.Hour, nil, nil, hours(0, 1, 2, 3)},
		"a long one leaves ticks out": {time.Hour, []time.Duration{150 * time.Minute}, nil, hours(0, 3, 4, 5)},
		"failures of an hour":         {time.Hour, nil, []error{failed, failed, failed}, hours(0, 1, 2, 3)},
		"failures of a day":           {24 * time.Hour, nil, []error{failed, failed, failed}, hours(0, 24, 48, 72)},
		"failures of 10 minutes": {
			10 * time.Minute, nil, []error{failed, failed, failed, failed, failed, nil},
			[]time.Duration{0, 10 * time.Minute, 30 * time.Minute, 70 * time.Minute, 130 * time.Minute, 190 * time.Minute, 200 * time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				begun := time.Now()
				var got []time.Duration
				every(ctx, c.interval, func(context.Context) error {
					n := len(got)
					got = append(got, time.Since(begun))
					if len(got) == len(c.want) {
						stop()
					}
					if n < len(c.takes) {
						time.Sleep(c.takes[n])
					}
					if n < len(c.errs) {
						return c.errs[n]
					}
					return nil
				})
				if !slices.Equal(got, c.want) {
					t.Errorf("calls: got %v, want %v", got, c.want)
				}
			})
		})
	}
}

func hours(n ...int) (all []time.Duration) {
	for _, n := range n {
		all = append(all, time.Duration(n)*time.Hour)
	}
	return all
}
