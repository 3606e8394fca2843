package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/top"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/internal/screen"
)

const (
	maxExposition = 8 << 20                // bytes of metrics that are read
	topPatience   = 10 * time.Second       // until a server must have answered
	resizeEvery   = 200 * time.Millisecond // how often the size of the terminal is looked at
)

// topOptions are the flags of top.
type topOptions struct {
	metrics, config string
	every           time.Duration
	once            bool
}

func (p *program) topCommand() *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what a server does, live",
		Long: `Top reads the metrics of a server every few seconds and shows what it does: redirects, answers
of the DNS and of the Handle protocol, writes and errors in a second, cache hits, disk, zones
and their copies, the transparency log, links, and what is left to do. Numbers that need
attention are red. The key q ends it.

The address is that of the server's setting metrics: --metrics names it, or the configuration of
the server does. If the server asks for a token there, put one with the scope metrics into
STELE_TOKEN or --token-file.

If the output is not a terminal, or with --once, top prints one picture and ends. With --json it prints
an object for each picture; rates are a second.`,
		Example: `  stele top
  stele top --metrics http://127.0.0.1:9180
  stele top --once --json --metrics http://127.0.0.1:9180`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.top(cmd, o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.metrics, "metrics", "", "`URL` of the server's metrics listener; the path /metrics may be left out")
	flags.StringVar(&o.config, "config", os.Getenv(configVariable), "configuration `file` of the server, which has the address (environment: STELE_CONFIG)")
	flags.DurationVar(&o.every, "interval", 2*time.Second, "time between two pictures")
	flags.BoolVar(&o.once, "once", false, "print one picture and end")
	_ = cmd.RegisterFlagCompletionFunc("config", cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	_ = cmd.RegisterFlagCompletionFunc("metrics", cobra.NoFileCompletions)
	return usage.NeverFiles(cmd)
}

// top is the verb.
func (p *program) top(cmd *cobra.Command, o topOptions) error {
	if o.every < 100*time.Millisecond || o.every > time.Hour {
		return usage.Errorf(cmd, "top.interval", "--interval: {interval} is not between 100ms and 1h", o.every)
	}
	address, err := p.metricsAddress(cmd, o)
	if err != nil {
		return err
	}
	ask, err := p.metricsReader(cmd, address)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out, isFile := p.stdout.(*os.File)
	view := &top.View{Address: strings.TrimSuffix(address, "/metrics"), Every: o.every}
	switch {
	case p.json:
		return p.topLines(ctx, ask, o)
	case o.once || !isFile || !isTerminal(out):
		picture, err := onePicture(ctx, ask, o.every)
		if err != nil {
			return err
		}
		view.Add(picture)
		return p.say("%s\n", view.Draw(80, 0))
	}
	view.Colour = os.Getenv("NO_COLOR") == ""
	return p.topLive(ctx, view, ask, out)
}

// metricsAddress returns where the metrics are.
func (p *program) metricsAddress(cmd *cobra.Command, o topOptions) (string, error) {
	text := o.metrics
	if text == "" {
		file := o.config
		if _, err := os.Stat(p.machineConfig); file == "" && err == nil {
			file = p.machineConfig
		}
		c := config.Load(file, os.Environ(), nil) // 'stele config check' says what else is wrong there
		if c.Metrics == "" {
			return "", usage.Errorf(cmd, "top.no-address", "the address of the metrics is not known; name it with --metrics URL, or set metrics in the configuration of the server and name that with --config")
		}
		text = localURL(c.Metrics)
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil {
		return "", usage.Errorf(cmd, "top.address", `--metrics: "{address}" is not the URL of a metrics listener, such as http://127.0.0.1:9180`, text)
	}
	at.RawQuery, at.Fragment = "", ""
	if at.Path = strings.TrimSuffix(at.Path, "/"); at.Path == "" {
		at.Path = "/metrics"
	}
	return at.String(), nil
}

// localURL returns the URL at which a listener of this machine is reached.
func localURL(listener string) string {
	host, port, err := net.SplitHostPort(listener)
	if err != nil {
		return listener
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// metricsReader returns what reads the metrics at a URL.
func (p *program) metricsReader(cmd *cobra.Command, address string) (func(context.Context) (*top.Reading, error), error) {
	token, err := p.remote.token()
	if err != nil {
		return nil, err
	}
	roots, err := p.remote.roots()
	if err != nil {
		return nil, err
	}
	if err := remote.CheckToken(token, strings.TrimSuffix(address, "/metrics"), p.remote.plainHTTP); err != nil {
		return nil, unsent(cmd, "--metrics", err)
	}
	client := &http.Client{Timeout: topPatience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return func(ctx context.Context) (*top.Reading, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := client.Do(request)
		if err != nil {
			return nil, refuse("top", stele.Unavailable, "top.no-answer", "{address} does not answer: {cause}", address, err)
		}
		defer answer.Body.Close()
		switch answer.StatusCode {
		case http.StatusOK:
		case http.StatusUnauthorized, http.StatusForbidden:
			return nil, refuse("top", stele.Unauthenticated, "top.token", "{address} asks for the token of an administrator with the scope metrics; put it into STELE_TOKEN, or into a file that --token-file names", address)
		default:
			return nil, refuse("top", stele.Unavailable, "top.status", "{address} answers with status {status}", address, answer.StatusCode)
		}
		text, err := io.ReadAll(io.LimitReader(answer.Body, maxExposition))
		if err != nil {
			return nil, refuse("top", stele.Unavailable, "top.no-answer", "{address} does not answer: {cause}", address, err)
		}
		reading := top.Parse(string(text), p.now())
		if !reading.Has("stele_ready") {
			return nil, refuse("top", stele.Invalid, "top.not-metrics", "{address} does not have the metrics of a Stele server", address)
		}
		return reading, nil
	}, nil
}

// onePicture takes two readings, and returns what is between them.
func onePicture(ctx context.Context, ask func(context.Context) (*top.Reading, error), every time.Duration) (*top.Picture, error) {
	before, err := ask(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(every):
	case <-ctx.Done():
		return nil, refuse("top", stele.Unavailable, "top.interrupted", "interrupted before the second reading")
	}
	now, err := ask(ctx)
	if err != nil {
		return nil, err
	}
	return top.New(before, now), nil
}

// topLines prints an object for each picture.
func (p *program) topLines(ctx context.Context, ask func(context.Context) (*top.Reading, error), o topOptions) error {
	for {
		picture, err := onePicture(ctx, ask, o.every)
		if err == nil {
			err = p.printObject(picture)
		}
		if err != nil && ctx.Err() != nil && !o.once {
			return nil
		}
		if err != nil || o.once {
			return err
		}
	}
}

// topLive draws until the user ends it.
func (p *program) topLive(ctx context.Context, view *top.View, ask func(context.Context) (*top.Reading, error), out *os.File) error {
	keys := make(chan byte)
	if in, ok := p.stdin.(*os.File); ok && isTerminal(in) {
		restore, err := screen.Keys(in)
		if err == nil {
			defer restore()
			go func() { // it ends with the program: a read of a terminal can't be broken off
				var key [1]byte
				for {
					if n, err := in.Read(key[:]); err != nil || n == 0 {
						return
					}
					keys <- key[0]
				}
			}()
		}
	}
	fmt.Fprint(out, "\x1b[?1049h\x1b[?25l")       // another screen, without a cursor
	defer fmt.Fprint(out, "\x1b[?25h\x1b[?1049l") // what was there before
	readings := make(chan any)
	asking, end := context.WithCancel(ctx)
	defer end()
	go readOften(asking, ask, view.Every, readings)
	var before *top.Reading
	width, height := screen.Size(out)
	draw := func() {
		text := strings.ReplaceAll(view.Draw(width, height), "\n", "\x1b[K\r\n")
		fmt.Fprint(out, "\x1b[H"+text+"\x1b[K\x1b[J")
	}
	draw()
	look := time.NewTicker(resizeEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case key := <-keys:
			if key == 'q' || key == 'Q' {
				return nil
			}
		case r := <-readings:
			switch r := r.(type) {
			case *top.Reading:
				if before != nil {
					view.Add(top.New(before, r))
				}
				before = r
			case error:
				view.Fail(stele.Reason(r).Error())
			}
			draw()
		case <-look.C:
			if w, h := screen.Size(out); w != width || h != height {
				width, height = w, h
				fmt.Fprint(out, "\x1b[2J")
				draw()
			}
		}
	}
}

// readOften sends readings, or why there is none, until the context ends.
func readOften(ctx context.Context, ask func(context.Context) (*top.Reading, error), every time.Duration, to chan<- any) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var what any
		reading, err := ask(ctx)
		if what = reading; err != nil {
			what = err
		}
		select {
		case to <- what:
		case <-ctx.Done():
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
