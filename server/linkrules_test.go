package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
)

// TestLinkRules: the file of an operator replaces the rules of the program, and is read again when it changes. One that is broken leaves the former rules.
func TestLinkRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "walls.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules := func(name string) string {
		return fmt.Sprintf(`{"version":"2026-11","walls":[{"name":%q,"body":"halt"}],"titles":{"en":["not found"]},"fillers":[],"pages":{"error":["error"],"login":["login"]}}`, name)
	}
	answer := &links.Answer{URL: "https://a.example/x", Final: "https://a.example/x", Status: 403, Header: links.Header{"content-type": {"text/html"}}, Body: []byte("<p>halt</p>"), Length: -1}
	usual, err := OpenLinkRules("")
	if err != nil {
		t.Fatal(err)
	}
	if e := usual.Judge(answer); e.Sign != "" {
		t.Errorf("the rules of the program find %q", e.Sign)
	}
	if _, err := OpenLinkRules(file); err == nil {
		t.Error("a file that is not there was read")
	}
	write(rules("first"))
	l, err := OpenLinkRules(file)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var log guardedText
		ctx, stop := context.WithCancel(t.Context())
		go l.Watch(ctx, time.Minute, slog.New(slog.NewTextHandler(&log, nil)))
		for _, step := range []struct{ text, want, told string }{
			{rules("first"), "first", ""}, {rules("second"), "second", "was read again"}, {"{", "second", "can't be read again"}, {"{", "second", ""}, {rules("third"), "third", "was read again"},
		} {
			write(step.text)
			log.take()
			time.Sleep(time.Minute)
			synctest.Wait()
			told := log.take()
			if e := l.Judge(answer); e.Sign != step.want || !strings.Contains(told, step.told) || step.told == "" && told != "" {
				t.Errorf("%s: the wall is %q, want %q; the log has %q", step.text, e.Sign, step.want, told)
			}
		}
		stop()
		synctest.Wait()
	})
}

// guardedText keeps what several goroutines write.
type guardedText struct {
	mu   sync.Mutex
	text []byte
}

func (g *guardedText) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.text = append(g.text, p...)
	return len(p), nil
}

// take returns what was written since the last call.
func (g *guardedText) take() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := string(g.text)
	g.text = nil
	return text
}

// TestOwnSiteNotAsked: a server behind a proxy knows its name from its public address alone, and does not ask itself.
func TestOwnSiteNotAsked(t *testing.T) {
	rules, err := OpenLinkRules("")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Config: &config.Config{Values: config.Values{Base: "https://127.0.0.1:8443"}}, linkRules: rules, now: time.Now}
	if a, _ := s.linkOptions().Ask(t.Context(), "http://127.0.0.1:8443/x", ask.Known{}); a.Failure != links.FailNotAskable {
		t.Errorf("the failure is %d", a.Failure)
	}
	if a, _ := s.linkOptions().Ask(t.Context(), "http://127.0.0.2:8443/x", ask.Known{}); a.Failure != links.FailPrivate {
		t.Errorf("at another address the failure is %d", a.Failure)
	}
}
