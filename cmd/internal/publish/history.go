package publish

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/eventlog"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	contracts "github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/bundle"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/storage"
)

// history are the flags about the log of events that is published beside the site.
type history struct {
	History    string `placeholder:"STATE" help:"Also put the events of this state of snapshot chain, as a log that others can begin with: bundles that never change below _log/, and their index. Its events must be final and confirmed, and those of the log that is there."`
	Deployment string `placeholder:"FILE" help:"Where the contracts of the state are, as for snapshot chain; by default those of the Ethereum Follow Protocol in production."`
}

func (h *history) checkHistory(report string) error {
	switch {
	case h.History == "" && h.Deployment != "":
		return errors.New("--deployment is for --history, which names the state")
	case h.History != "" && command.Inside(report, h.History):
		return fmt.Errorf("--report=%s is in the state, --history: name a file elsewhere", report)
	}
	return nil
}

// openLog opens the state. The log is nil if there is none to publish.
func (h *history) openLog() (_ publisher.History, closeState func() error, err error) {
	if h.History == "" {
		return nil, func() error { return nil }, nil
	}
	d := contracts.Production()
	if h.Deployment != "" {
		text, err := os.ReadFile(h.Deployment)
		if err == nil {
			d, err = contracts.ParseDeployment(text)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("--deployment: %w", err)
		}
	}
	if !chain.IsState(h.History) {
		return nil, nil, fmt.Errorf("--history=%s: nothing was read into it yet: name the --state of snapshot chain", h.History)
	}
	state, err := chain.Open(h.History, d)
	if err != nil {
		return nil, nil, fmt.Errorf("--history: %w", err)
	}
	return stateLog{state}, state.Close, nil
}

// A stateLog is the log of the events of a state.
type stateLog struct{ state *chain.State }

// Extend implements publisher.History.
func (s stateLog) Extend(ctx context.Context, index []byte, put func(publisher.LogObject) error) (publisher.LogReport, error) {
	var was *bundle.Index
	if index != nil {
		var err error
		if was, err = bundle.ParseIndex(index); err != nil {
			return publisher.LogReport{}, fmt.Errorf("--history: %w: if nobody needs what it names, remove %s, and publish again: bundles that are right stay", err, site.LogIndexKey)
		}
	}
	chains, err := s.state.History()
	if err != nil {
		return publisher.LogReport{}, fmt.Errorf("--history: %w", err)
	}
	var putBundle func(bundle.Object) error
	if put != nil {
		putBundle = func(o bundle.Object) error {
			return put(publisher.LogObject{Key: site.LogKey(o.Name), Body: o.Body, Full: o.Full, Replaces: o.Replaces})
		}
	}
	built, err := bundle.Build(ctx, chains, was, putBundle)
	if err != nil {
		return publisher.LogReport{}, fmt.Errorf("--history: %w", err)
	}
	report := publisher.LogReport{Rows: built.Index.Rows, Bundles: len(built.Index.Bundles), Put: built.Put, Bytes: built.Bytes, Behind: built.Behind, Changed: built.Changed}
	if put == nil || !built.Changed {
		return report, nil
	}
	body, err := built.Index.Body()
	if err == nil {
		err = put(publisher.LogObject{Key: site.LogIndexKey, Body: body})
	}
	return report, err
}

// mostDamaged bounds the bundles that verify names.
const mostDamaged = 10

// verifyLog compares the log of a bucket with its index. It is nil if there is none.
func verifyLog(ctx context.Context, to storage.Bucket) (*publisher.LogVerification, error) {
	x, damaged, err := bundle.Verify(ctx, eventlog.Of(to), mostDamaged)
	switch {
	case errors.Is(err, bundle.ErrNone):
		return nil, nil
	case errors.Is(err, bundle.ErrIndex) || errors.Is(err, bundle.ErrDamaged):
		return &publisher.LogVerification{Damaged: []string{err.Error()}}, nil
	case err != nil:
		return nil, err
	}
	v := &publisher.LogVerification{Rows: x.Rows, Bundles: len(x.Bundles), Digest: x.Digest, Damaged: []string{}}
	for _, err := range damaged {
		v.Damaged = append(v.Damaged, err.Error())
	}
	return v, nil
}
