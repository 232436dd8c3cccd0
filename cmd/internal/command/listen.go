package command

import (
	"errors"
	"fmt"
	"net"
)

// Listen listens at the address of a flag. The listener may be closed twice: a server closes
// it too.
func Listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w (--%s chooses another address)", err, flag)
	}
	return listener{l}, nil
}

type listener struct{ net.Listener }

// Close does nothing the second time.
func (l listener) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
