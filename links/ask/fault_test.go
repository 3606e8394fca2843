package ask

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/outbound"
)

// TestOwnFaults: what goes wrong on this machine says nothing of a host.
func TestOwnFaults(t *testing.T) {
	v := &visit{Asker: asker(t)}
	dial := func(e syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", e)}
	}
	for _, e := range []syscall.Errno{syscall.ENETUNREACH, syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.EPERM} {
		if got := v.failure(t.Context(), "a.test", dial(e)); got != links.FailOurs {
			t.Errorf("%s: failure %d", e, got)
		}
	}
	for e, want := range map[syscall.Errno]links.Failure{syscall.EHOSTUNREACH: links.FailReset, syscall.ECONNRESET: links.FailReset, syscall.ECONNREFUSED: links.FailRefused} {
		if got := v.failure(t.Context(), "a.test", dial(e)); got != want {
			t.Errorf("%s: failure %d, want %d", e, got, want)
		}
	}
	if e := judge(t, &links.Answer{Failure: links.FailOurs}); e.Weight != links.Nothing || e.Cause != links.OwnFault || e.Wait != time.Hour {
		t.Errorf("%+v", e)
	}
}

// A resolver that can't be reached is a fault of this machine too.
func TestResolverAway(t *testing.T) {
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"no more files": func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "udp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
		},
		"refused": outbound.NewResolver("127.0.0.1:"+unused(t).port, time.Second).Dial,
	} {
		a := asker(t, func(o *Options) { o.Resolver = &net.Resolver{PreferGo: true, Dial: dial} })
		if got, _ := a.Check(t.Context(), "http://a.test/", Known{}); got.Failure != links.FailOurs {
			t.Errorf("%s: failure %d", name, got.Failure)
		}
	}
	v := &visit{Asker: asker(t)}
	if got := v.failure(t.Context(), "a.test", &net.DNSError{Err: errors.New("server misbehaving").Error(), Name: "a.test"}); got != links.FailDNS {
		t.Errorf("a resolver that does not know: failure %d", got)
	}
}
