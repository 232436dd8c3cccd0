package publisher

import "context"

// A Syncer is a bucket that does not make each object durable by itself, as a folder of
// this machine. Whoever needs an order that a power failure keeps asks for it.
type Syncer interface {
	Sync(ctx context.Context) error
}

// durably does a step of which the next one relies on: also after a power failure that
// must not be there without this.
func (r *run) durably(ctx context.Context, step func() error) error {
	if err := step(); err != nil {
		return err
	}
	if to, ok := r.bucket.inner.(Syncer); ok {
		return to.Sync(ctx)
	}
	return nil
}
