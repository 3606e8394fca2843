package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/store/pebble"
)

// patient is the installation that is looked over, and what is known of it by now.
type patient struct {
	*program
	doctorOptions
	cmd    *cobra.Command
	config *config.Config
	away   bool // the server is elsewhere: the folder and this machine say nothing of it
	web    *http.Client

	at       string // which examination
	problems int
	failed   error // to print

	answers  bool          // the server does
	skew     time.Duration // by which its clock is ahead of ours
	known    bool          // skew is
	registry *findings     // nil if the registry could not be looked into
}

// findings is what the registry itself tells.
type findings struct {
	status     *remote.Status // nil if no server was asked
	last       time.Time      // of the last change; the zero time if there is none
	namespaces []*stele.Namespace
	users      map[string]auth.User
	tokens     []auth.Token
	zones      []stele.ZoneState
	sealed     bool // nothing is written
}

// newPatient reads the configuration. What is wrong there is for an examination to
// tell.
func (p *program) newPatient(cmd *cobra.Command, o doctorOptions) (*patient, error) {
	far, err := p.isRemote(cmd)
	if err != nil {
		return nil, err
	}
	roots, err := p.remote.roots()
	if err != nil {
		return nil, err
	}
	x := &patient{program: p, doctorOptions: o, cmd: cmd, away: far, config: config.Load(o.config, os.Environ(), nil)}
	if !cmd.Flags().Changed("data") && !cmd.Flags().Changed("store") {
		p.data, p.store = x.config.Data, x.config.Store
	}
	if p.data == "" { // the configuration is broken
		p.data = config.DefaultData
	}
	x.web = &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       15 * time.Second,
	}
	return x, nil
}

// local returns the URL of the server on this machine; "" if there is none that is
// known.
func (x *patient) local() string {
	host, port, err := net.SplitHostPort(x.config.HTTP)
	if err != nil || port == "0" {
		return ""
	}
	if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// public returns the URL by which the world knows the server; "" if nobody says.
func (x *patient) public() string {
	if x.away {
		return strings.TrimRight(x.remote.server, "/")
	}
	return x.config.Base
}

// get asks for a URL, and says how long the answer took.
func (x *patient) get(ctx context.Context, link string) (*http.Response, time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, 0, err
	}
	begin := x.now()
	response, err := x.web.Do(r)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return nil, 0, err
	}
	_ = response.Body.Close() // the head tells enough
	return response, x.now().Sub(begin), nil
}

// holder returns the process that has the folder open; 0 if nobody has.
func (x *patient) holder() (pid int, since string) {
	if x.store != "" {
		return 0, ""
	}
	who, _ := pebble.Holder(x.data)
	rest, ok := strings.CutPrefix(who, "process ")
	number, since, _ := strings.Cut(rest, " since ")
	pid, err := strconv.Atoi(number)
	if !ok || err != nil || pid <= 0 || !isRunning(pid) {
		return 0, ""
	}
	return pid, since
}
