package test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// browser is a tab of a Chromium, which the test controls.
type browser struct {
	t *testing.T
	*chromium
	session string        // of the tab
	loaded  chan struct{} // has one thing for each page that was loaded
}

// chromium is a process, which the test controls through a pipe (the DevTools protocol, as JSON
// that ends in a zero byte).
type chromium struct {
	to      io.Writer
	answers chan message
	last    int // command that was given

	mu       sync.Mutex
	loads    map[string]chan struct{} // of the tabs, by session
	kept     bool                     // the page that came last was kept for the Back button
	problems []string                 // what the browser complained of
}

// message is a message of the browser: the answer to a command, or an event.
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Tab    string          `json:"sessionId"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// startBrowser starts Chromium. It resolves no names and reaches only servers on this
// machine.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + t.TempDir(), "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
		"--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-default-apps", "--no-first-run", "--no-proxy-server", "--mute-audio",
	}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // it refuses to run as root with one
	}
	cmd := exec.CommandContext(ctx, "chromium", args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}        // 3 and 4 to it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its helpers are to end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(theirIn.Close(), theirOut.Close())
	p := &chromium{to: in, answers: make(chan message, 1), loads: make(map[string]chan struct{})}
	var reading sync.WaitGroup
	reading.Go(func() { p.read(out) })
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		_ = errors.Join(in.Close(), out.Close())
		reading.Wait()
	})
	return p.tab(t, "")
}

// tab opens a tab in a context, which has the cookies: "" is the usual one.
func (p *chromium) tab(t *testing.T, context string) *browser {
	t.Helper()
	b := &browser{t: t, chromium: p, loaded: make(chan struct{}, 100)}
	where := map[string]any{"url": "about:blank"}
	if context != "" {
		where["browserContextId"] = context
	}
	var target struct{ TargetID, SessionID string }
	b.do("Target.createTarget", where, &target)
	b.do("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	p.mu.Lock()
	p.loads[b.session] = b.loaded
	p.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		b.do(domain+".enable", nil, nil)
	}
	return b
}

// anotherTab opens a tab that shares its cookies with this one.
func (b *browser) anotherTab() *browser {
	b.t.Helper()
	return b.tab(b.t, b.context())
}

// context returns the context of the tab.
func (b *browser) context() string {
	b.t.Helper()
	var r struct {
		TargetInfo struct{ BrowserContextID string }
	}
	b.do("Target.getTargetInfo", nil, &r)
	return r.TargetInfo.BrowserContextID
}

// anotherUser opens a tab with cookies of its own.
func (b *browser) anotherUser() *browser {
	b.t.Helper()
	var r struct{ BrowserContextID string }
	(&browser{t: b.t, chromium: b.chromium}).do("Target.createBrowserContext", nil, &r)
	return b.tab(b.t, r.BrowserContextID)
}

// read passes on what the browser says until it ends.
func (p *chromium) read(out io.Reader) {
	defer close(p.answers)
	lines := bufio.NewReader(out)
	for {
		text, err := lines.ReadBytes(0)
		if err != nil {
			return
		}
		var r message
		if err := json.Unmarshal(text[:len(text)-1], &r); err != nil {
			p.complain("it says %q: %v", text, err)
			return
		}
		switch r.Method {
		case "":
			p.answers <- r
		case "Page.loadEventFired":
			p.load(r.Tab, false)
		case "Page.frameNavigated":
			var how struct{ Type string }
			if err := json.Unmarshal(r.Params, &how); err == nil && how.Type == "BackForwardCacheRestore" { // which fires no load event
				p.load(r.Tab, true)
			}
		case "Runtime.exceptionThrown", "Log.entryAdded":
			p.complain("%s", r.Params)
		}
	}
}

// load notes that a tab has a page.
func (p *chromium) load(tab string, kept bool) {
	p.mu.Lock()
	loaded := p.loads[tab]
	p.kept = kept
	p.mu.Unlock()
	loaded <- struct{}{}
}

// back goes back to the page before this one, and reports whether the browser had kept it as the user left it.
func (b *browser) back() (kept bool) {
	b.t.Helper()
	var r struct {
		CurrentIndex int
		Entries      []struct{ ID int }
	}
	b.do("Page.getNavigationHistory", nil, &r)
	if r.CurrentIndex == 0 {
		b.t.Fatal("there is no page before this one")
	}
	b.do("Page.navigateToHistoryEntry", map[string]any{"entryId": r.Entries[r.CurrentIndex-1].ID}, nil)
	b.wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}

func (p *chromium) complain(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// complaints returns the problems since its last call.
func (p *chromium) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.problems
	p.problems = nil
	return list
}

// do gives a command to the tab and reads its result.
func (b *browser) do(method string, params, result any) {
	b.t.Helper()
	b.last++
	text, err := json.Marshal(map[string]any{"id": b.last, "method": method, "params": params, "sessionId": b.session})
	if b.session == "" {
		text, err = json.Marshal(map[string]any{"id": b.last, "method": method, "params": params})
	}
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	select {
	case r, ok := <-b.answers:
		switch {
		case !ok:
			b.t.Fatalf("%s: the browser has ended: %q", method, b.complaints())
		case r.Error != nil || r.ID != b.last:
			b.t.Fatalf("%s: %+v", method, r)
		case result != nil:
			if err := json.Unmarshal(r.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
	case <-time.After(time.Minute):
		b.t.Fatalf("%s: no answer within a minute", method)
	}
}

// open opens an address and waits until the page is there.
func (b *browser) open(url string) {
	b.t.Helper()
	var r struct{ ErrorText string }
	b.do("Page.navigate", map[string]any{"url": url}, &r)
	if r.ErrorText != "" {
		b.t.Fatalf("%s: %s", url, r.ErrorText)
	}
	b.wait()
}

// wait waits until a page is there.
func (b *browser) wait() {
	b.t.Helper()
	select {
	case <-b.loaded:
	case <-time.After(time.Minute):
		b.t.Fatal("no page within a minute")
	}
}

// eval returns what an expression of JavaScript is on the page.
func (b *browser) eval(expression string, into any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.do("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if err := json.Unmarshal(r.Result.Value, into); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// evalAwait returns what a promise of JavaScript on the page becomes.
func (b *browser) evalAwait(expression string, into any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.do("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if err := json.Unmarshal(r.Result.Value, into); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// press presses a key, which writes a text unless that is empty.
func (b *browser) press(key, code string, number int, text string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		params := map[string]any{"type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number}
		if kind == "keyDown" && text != "" {
			params["text"] = text
		}
		b.do("Input.dispatchKeyEvent", params, nil)
	}
}

// width makes the window so many points wide, in light or dark colours.
func (b *browser) width(n int, colours string) {
	b.t.Helper()
	b.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": n, "height": 900, "deviceScaleFactor": 1, "mobile": n < 600}, nil)
	b.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": colours}}}, nil)
}
