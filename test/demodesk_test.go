package test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Pages show the demo at the address that it has by itself, and its publisher's
// site at the next port. Here it runs on free ports, and what is shown is turned
// into what is and back.
const (
	shownDemo = "localhost:8080"
	shownSite = "localhost:8081"
)

// demo is a running `stele serve --demo`.
type demo struct {
	cmd        *exec.Cmd
	http, site string // host and port
}

// startDemo starts the demo in the desk's world.
func (d desk) startDemo(ctx context.Context) (*demo, error) {
	cmd := exec.CommandContext(ctx, d.sh.dir+"/bin/stele", "serve", "--demo", "--http", "127.0.0.1:0")
	cmd.Dir, cmd.Env = d.sh.dir, d.sh.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	served := &demo{cmd: cmd}
	lines := bufio.NewScanner(out)
	for served.http == "" && lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "serving http://"); ok {
			served.http = address
		}
	}
	go func() { // so that it never waits for a reader
		for lines.Scan() {
		}
	}()
	if served.http == "" {
		return nil, fmt.Errorf("the demo does not say where it serves: %v", cmd.Wait())
	}
	return served, served.findSite(ctx)
}

// endDemo ends the demo if it runs, which must end well.
func (d *desk) endDemo() error {
	if d.demo == nil {
		return nil
	}
	// The context that ended it may have done so already.
	_ = d.demo.cmd.Process.Signal(syscall.SIGTERM)
	if err := d.demo.cmd.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the demo: %w", err)
	}
	return nil
}

// findSite learns where the publisher's site is from a redirect to it.
func (s *demo) findSite(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+s.http+"/urn:paradisec:AB1:001:A", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	location, err := response.Location()
	if err != nil {
		return err
	}
	s.site = location.Host
	return nil
}

// real turns what a page shows into what is.
func (s *demo) real(text string) string {
	return strings.NewReplacer(shownDemo, s.http, shownSite, s.site).Replace(text)
}

// shown turns what a command printed into what a page shows. The lines of HTTP end
// in CR, which nobody sees.
func (s *demo) shown(text string) string {
	return strings.NewReplacer(s.http, shownDemo, s.site, shownSite, "\r\n", "\n").Replace(text)
}

// runShown runs the commands of a block; those that speak to the demo find one.
func (d *desk) runShown(ctx context.Context, commands []string) ([]result, error) {
	if d.demo == nil && strings.Contains(strings.Join(commands, "\n"), shownDemo) {
		var err error
		if d.demo, err = d.startDemo(d.life); err != nil {
			return nil, err
		}
	}
	if d.demo == nil {
		return d.sh.run(ctx, commands...)
	}
	own := make([]string, len(commands))
	for i, c := range commands {
		own[i] = d.demo.real(c)
	}
	results, err := d.sh.run(ctx, own...)
	for i := range results {
		results[i].out = d.demo.shown(results[i].out)
	}
	return results, err
}
