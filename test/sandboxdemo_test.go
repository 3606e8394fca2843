package test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Pages show the demo at its default addresses, and its publisher's site at the next port.
// Here it runs on free ports, and the test translates between the addresses that pages show
// and the real ones.
const (
	shownDemo = "localhost:8080"
	shownSite = "localhost:8081"
	shownDNS  = "127.0.0.1:8053"
	shownDig  = "@127.0.0.1 -p 8053" // the same for dig
)

// demo is a running `stele serve --demo`.
type demo struct {
	cmd             *exec.Cmd
	http, site, dns string // host and port
	token           string // of an administrator
}

// startDemo starts the demo in the sandbox's world.
func (d *sandbox) startDemo(ctx context.Context) (*demo, error) {
	port, err := findPort()
	if err != nil {
		return nil, err
	}
	served := &demo{dns: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	cmd := exec.CommandContext(ctx, d.sh.dir+"/bin/stele", "serve", "--demo", "--http", "127.0.0.1:0", "--dns", served.dns)
	served.cmd = cmd
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
	lines := bufio.NewScanner(out)
	for (served.http == "" || served.token == "") && lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "serving http://"); ok {
			served.http = address
		}
		if _, rest, ok := strings.Cut(lines.Text(), "Authorization: Bearer "); ok {
			served.token, _, _ = strings.Cut(rest, "'")
		}
	}
	go func() { // so that it never waits for a reader
		for lines.Scan() {
		}
	}()
	if served.http == "" || served.token == "" {
		return nil, fmt.Errorf("the demo does not say where it serves, or whom: %v", cmd.Wait())
	}
	d.sh.env = append(d.sh.env, "STELE_TOKEN="+served.token)
	return served, served.findSite(ctx)
}

// visitDemo runs a demonstration until the test ends, with settings in its environment.
func visitDemo(t *testing.T, settings ...string) *demo {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(stele(t), filepath.Join(dir, "bin/stele")); err != nil {
		t.Fatal(err)
	}
	life, end := context.WithCancel(context.WithoutCancel(t.Context()))
	d := &sandbox{sh: shell{dir: dir, env: append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, settings...)}, life: life}
	served, err := d.startDemo(life)
	if err != nil {
		end()
		t.Fatal(err)
	}
	d.demo = served
	t.Cleanup(func() {
		end()
		if err := d.endDemo(); err != nil {
			t.Error(err)
		}
	})
	return served
}

// endDemo waits for the end of the demo, if it runs, which must exit with success. The end
// of the sandbox's life has sent it a signal: a second one would end it at once.
func (d *sandbox) endDemo() error {
	if d.demo == nil {
		return nil
	}
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

// real translates what a page shows into real addresses.
func (s *demo) real(text string) string {
	_, port, _ := net.SplitHostPort(s.dns) // it has one
	return strings.NewReplacer(shownDemo, s.http, shownSite, s.site, shownDNS, s.dns, shownDig, "@127.0.0.1 -p "+port).Replace(text)
}

// shown turns what a command printed into what a page shows. This machine has another
// name too, and servers of the DNS are told with their port alone. The lines of HTTP end
// in CR, which is invisible.
func (s *demo) shown(text string) string {
	_, port, _ := net.SplitHostPort(s.http) // it has one
	return strings.NewReplacer(s.http, shownDemo, s.site, shownSite, s.dns, shownDNS,
		"localhost:"+port, shownDemo, "localhost., port "+port, "localhost., port 8080", "\r\n", "\n").Replace(text)
}

// speaks reports whether a command uses the demo.
func speaks(command string) bool {
	return slices.ContainsFunc([]string{shownDemo, shownDNS, shownDig}, func(at string) bool { return strings.Contains(command, at) })
}

// runShown runs the commands of a block; it starts the demo for those that use it, and a
// database for those that use one.
func (d *sandbox) runShown(ctx context.Context, commands []string) ([]result, error) {
	if d.literal {
		results, err := d.sh.run(ctx, commands...)
		for i := range results {
			results[i].out = strings.NewReplacer("127.0.0.1:8080", shownDemo, "\r\n", "\n").Replace(results[i].out)
		}
		return results, err
	}
	if d.database == nil && slices.ContainsFunc(commands, needsDatabase) {
		if err := d.startDatabase(); err != nil {
			return nil, err
		}
	}
	if d.database == nil {
		return d.runDemo(ctx, commands)
	}
	own := make([]string, len(commands))
	for i, c := range commands {
		own[i] = strings.ReplaceAll(c, shownDatabase, ownDatabase)
	}
	results, err := d.runDemo(ctx, own)
	for i := range results {
		results[i].out = strings.ReplaceAll(results[i].out, ownDatabase, shownDatabase)
	}
	return results, err
}

// runDemo runs commands of which some may use the demo.
func (d *sandbox) runDemo(ctx context.Context, commands []string) ([]result, error) {
	if d.demo == nil && slices.ContainsFunc(commands, speaks) {
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
