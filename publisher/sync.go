package publisher

import "context"

// A Syncer is a Bucket whose writes become durable only by Sync, such as a local folder.
type Syncer interface {
	Sync(ctx context.Context) error
}

// durably runs a step and makes its writes durable, so that even after a power failure no later
// step exists without it.
func (r *run) durably(ctx context.Context, step func() error) error {
	if err := step(); err != nil {
		return err
	}
	if to, ok := r.bucket.inner.(Syncer); ok {
		return to.Sync(ctx)
	}
	return nil
}
