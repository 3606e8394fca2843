package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele/links"
)

// linkRulesEvery is how often the server looks whether the file with the rules of links changed.
const linkRulesEvery = time.Minute

// LinkRules are the rules by which answers of targets are judged: those of an operator's file, or those of the program. Many goroutines use them at
// once.
type LinkRules struct {
	path string // "": the rules are those of the program
	now  atomic.Pointer[readRules]
}

// readRules is what was read.
type readRules struct {
	*links.Rules
	text []byte
}

// OpenLinkRules reads the rules of a file; those of the program if path is empty.
func OpenLinkRules(path string) (*LinkRules, error) {
	l := &LinkRules{path: path}
	if path == "" {
		rules, err := links.UsualRules()
		if err != nil {
			return nil, err
		}
		l.now.Store(&readRules{Rules: rules})
		return l, nil
	}
	_, err := l.read()
	return l, err
}

// maxLinkRules is more bytes than a list of rules may have: package links refuses it then.
const maxLinkRules = 2 << 20

// read reads the file, and reports whether it changed. The rules stay as they are if it can't be read.
func (l *LinkRules) read() (changed bool, err error) {
	f, err := os.Open(l.path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLinkRules))
	if err != nil {
		return false, err
	}
	if was := l.now.Load(); was != nil && bytes.Equal(was.text, text) {
		return false, nil
	}
	rules, err := links.ParseRules(text)
	if err != nil {
		return false, err
	}
	l.now.Store(&readRules{rules, text})
	return true, nil
}

// Judge says what an answer is evidence of.
func (l *LinkRules) Judge(a *links.Answer) links.Evidence { return l.now.Load().Judge(a) }

// Watch reads the file again when it changes, until the context ends. A file that can't be read is told to the operator once, and the former rules stay.
func (l *LinkRules) Watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	told := ""
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		changed, err := l.read()
		switch {
		case err != nil && err.Error() != told:
			told = err.Error()
			log.Warn("the file with the rules of links can't be read again; the former rules are used", "error", told)
		case changed:
			told = ""
			log.Info("the file with the rules of links was read again", "file", l.path, "version", l.now.Load().Version)
		}
	}
}
