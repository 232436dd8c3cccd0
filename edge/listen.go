package edge

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// A place is a parsed --listen of nginx or Caddy: PORT, ADDRESS:PORT, NAME:PORT, or NAME alone, which means port 443.
type place struct {
	Text string     // as it was given
	Addr netip.Addr // the zero Addr for all addresses
	Name string     // the only host that is served; "" for all
	Port string
	TLS  bool // the name asks for it: port 443
}

const (
	httpsPort  = "443"
	listenWant = "want a port, address:port, or for Caddy name:port; a name alone, or with port 443, is served with TLS"
)

// hostName matches names of hosts. The last label begins with a letter, unlike in addresses.
var hostName = regexp.MustCompile(`^(?i)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

const maxHostName = 253

func parseListen(text string) (place, error) {
	p := place{Text: text}
	wrong := func(why string) (place, error) {
		return place{}, fmt.Errorf("--listen: %q: %s: %s", text, why, listenWant)
	}
	host, port := "", text
	if at := strings.LastIndexByte(text, ':'); at >= 0 {
		host, port = text[:at], text[at+1:]
	} else if hostName.MatchString(text) {
		host, port = text, httpsPort
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return wrong("no port from 1 to 65535")
	}
	p.Port = strconv.FormatUint(number, 10)
	inner, isBracketed := strings.CutPrefix(host, "[")
	if isBracketed {
		inner = strings.TrimSuffix(inner, "]")
	}
	addr, err := netip.ParseAddr(inner)
	switch {
	case host == "", host == "*":
	case err == nil && addr.Zone() == "" && addr.Is6() == isBracketed:
		p.Addr = addr
	case len(host) <= maxHostName && hostName.MatchString(host):
		p.Name, p.TLS = strings.ToLower(host), p.Port == httpsPort
	default:
		return wrong("neither an address nor the name of a host")
	}
	if p.Port == httpsPort && !p.TLS {
		return wrong("port 443 is for TLS, which needs a name")
	}
	return p, nil
}

// listenAddress returns the place in nginx's notation. nginx listens at addresses, and answers for every name.
func (p place) listenAddress() (string, error) {
	switch {
	case p.TLS:
		return "", fmt.Errorf("--listen: %q: nginx has no certificate for it: want a port, or address:port, and a server with the certificate in front (docs/deploy/nginx.md)", p.Text)
	case p.Name == "localhost":
		return p.Name + ":" + p.Port, nil
	case p.Name != "":
		return "", fmt.Errorf("--listen: %q: nginx listens at addresses, and answers for every name: want a port, or address:port", p.Text)
	case p.Addr.IsValid():
		return net.JoinHostPort(p.Addr.String(), p.Port), nil
	}
	return p.Port, nil
}

// checkCertificate fails if Caddy cannot get a certificate for the name. Caddy makes the one of localhost itself.
func (p place) checkCertificate() error {
	if p.TLS && p.Name != "localhost" && !strings.Contains(p.Name, ".") {
		return fmt.Errorf("--listen: %q: no authority gives a certificate for a name without a dot: want a public name, or another port for plain HTTP", p.Text)
	}
	return nil
}

// Site returns the address of Caddy's site: a port, which answers for every host, or a name with its port.
func (p place) Site() string {
	switch {
	case p.TLS:
		return "https://" + p.Name
	case p.Name != "":
		return "http://" + p.Name + ":" + p.Port
	}
	return "http://:" + p.Port
}

// Bind returns the address on which Caddy listens, "" for all.
func (p place) Bind() string {
	if !p.Addr.IsValid() || p.Addr.IsUnspecified() {
		return ""
	}
	return p.Addr.String()
}
