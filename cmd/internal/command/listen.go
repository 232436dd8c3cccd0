package command

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// Listen listens at HOST:PORT, the value of a flag; a port alone means localhost. The listener may be
// closed twice: a server closes it too.
func Listen(flag, address string) (net.Listener, error) {
	if _, err := strconv.ParseUint(address, 10, 64); err == nil {
		address = "127.0.0.1:" + address
	}
	l, err := net.Listen("tcp", address)
	if bad := (*net.AddrError)(nil); errors.As(err, &bad) {
		return nil, fmt.Errorf("--%s=%s: %s; want HOST:PORT, such as 0.0.0.0:8080, or a port on this machine", flag, address, bad.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; choose another address with --%s", err, flag)
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
