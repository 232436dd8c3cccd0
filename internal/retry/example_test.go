package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/followpress/followpress/internal/retry"
)

func ExamplePolicy_Do() {
	errBusy := errors.New("busy")
	p := retry.Policy{
		Retryable: func(err error) bool { return errors.Is(err, errBusy) },
		First:     time.Millisecond, Longest: time.Second, Patience: time.Minute,
	}
	attempts := 0
	err := p.Do(context.Background(), func() error {
		if attempts++; attempts < 3 {
			return errBusy
		}
		return nil
	})
	fmt.Println(attempts, err)
	// Output: 3 <nil>
}
