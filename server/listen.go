package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/httpd"
)

// listener is a socket, and the server that answers there.
type listener struct {
	net.Listener               // nil if it is not open
	server       *http.Server  // nil before it answers
	front        *httpd.Server // the same, for the public; nil for others
	shared       bool          // another process has the socket too, and keeps it
	tls          bool          // it speaks TLS
}

// anyPort is a free port of this machine.
const anyPort = "127.0.0.1:0"

// listen opens the sockets, or takes those that systemd opened.
func (s *server) listen(ctx context.Context) error {
	given, err := handedOver()
	if err != nil {
		return err
	}
	if err := s.http.listen(ctx, given["http"], s.HTTP); err != nil {
		if !slices.Contains(s.o.AnyPort, "http") {
			return err
		}
		if err := s.http.listen(ctx, nil, anyPort); err != nil {
			return err
		}
	}
	for _, other := range []struct {
		*listener
		given   net.Listener
		address string
		wanted  bool
	}{
		{&s.https, given["https"], s.HTTPS, s.HTTPS != ""},
		{&s.metrics, given["metrics"], s.Metrics, s.Metrics != "" || given["metrics"] != nil},
	} {
		if !other.wanted {
			continue
		}
		if err := other.listen(ctx, other.given, other.address); err != nil {
			s.closeListeners()
			return err
		}
	}
	s.https.tls = true
	return nil
}

// listen opens a socket, unless it is given.
func (l *listener) listen(ctx context.Context, given net.Listener, address string) (err error) {
	if given != nil {
		l.Listener, l.shared = given, true
		return nil
	}
	var config net.ListenConfig
	config.SetMultipathTCP(false) // such a socket takes no filter; see refuseNew
	l.Listener, err = config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return refuse("serve", stele.Unavailable, "server.address-in-use", "another program listens on {address}; end it, or choose another address", address)
	case errors.Is(err, syscall.EACCES):
		return refuse("serve", stele.Forbidden, "server.port-privileged", "only an administrator may listen on {address}; choose a port from 1024 on, or let systemd open the socket", address)
	case err != nil:
		return refuse("serve", stele.Unavailable, "server.not-listening", "listening on {address}: {cause}", address, err)
	}
	return nil
}

// url returns the address of the listener for a client on this machine; "" if it is not
// open.
func (l *listener) url() string {
	if l.Listener == nil {
		return ""
	}
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return l.Addr().String()
	}
	host := "localhost"
	if !address.IP.IsUnspecified() {
		host = address.IP.String()
	}
	if l.tls {
		return "https://" + net.JoinHostPort(host, fmt.Sprint(address.Port))
	}
	return "http://" + net.JoinHostPort(host, fmt.Sprint(address.Port))
}

// host returns the address of a listener without its port; "" for all addresses.
func (l *listener) host() string {
	host, _, _ := net.SplitHostPort(l.Addr().String()) // every listener's address has one
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return ""
	}
	return host
}

// port returns the port of a listener.
func (l *listener) port() int {
	_, text, _ := net.SplitHostPort(l.Addr().String())
	port, _ := strconv.Atoi(text) // it is one
	return port
}

// sleep waits, unless the context ends.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
