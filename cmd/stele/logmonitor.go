package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/internal/progress"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/transparency"
)

// monitorFlags are those of log monitor.
type monitorFlags struct {
	keys      []string
	state     string
	watch     []string
	watchFile string
	proofs    []string
	once      bool
	every     time.Duration
	pause     time.Duration
	allow     string
}

func (p *program) logMonitorCommand() *cobra.Command {
	var f monitorFlags
	cmd := &cobra.Command{
		Use:   "monitor URL --key KEY --state FILE",
		Short: "Follow the log of a registry from outside",
		Long: `Monitor reads the log of the registry at URL, and finds out whether the registry keeps to what
it has signed. It checks the signature of the checkpoint by KEY, which 'stele log key' prints at
the registry (give the key, or a file that has it), compares the log with each checkpoint that it has seen before, and reads all entries
that are new. What it has seen is kept in FILE: who removes the file begins anew.

It prints the changes of the names that you watch. --watch takes a name, which stands for the names
below it too, or the beginning of names with a star: 'ark:12345/x*'. Names of namespaces that are not
listed are not in the log; give --proof with a file of 'stele log prove' for each of them, which has
the key to find it.

The exit code is 0 if nothing is wrong, 1 if history was rewritten, and 5 if the registry can't be
reached. A registry that was restored from a backup says so in its log: monitor tells which changes are
gone, compares what is left, and goes on. If it is interrupted, give the same command again.`,
		Example: `  stele log monitor https://names.example.org --key names.example.org/.log+8f2b1c3d+AQ... --state names.json
  stele log monitor https://names.example.org --key log.pub --state names.json --watch ark:12345
  stele log monitor https://names.example.org --key log.pub --state names.json --proof x1.proof --every 1h`,
		Args: usage.OneArgument("the URL of the registry"),
		RunE: func(cmd *cobra.Command, args []string) error { return p.logMonitor(cmd, &f, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.keys, "key", nil, "public `key` of the log, or a file with it; one of a witness, too; may be repeated")
	flags.StringVar(&f.state, "state", "", "`file` for what was seen; it is made if it is not there")
	flags.StringArrayVar(&f.watch, "watch", nil, "`name` whose changes are printed, or the beginning of names and a star; may be repeated")
	flags.StringVar(&f.watchFile, "watch-file", "", "`file` with names to watch, one a line")
	flags.StringArrayVar(&f.proofs, "proof", nil, "`file` of a proof, whose name is watched; may be repeated")
	flags.BoolVar(&f.once, "once", false, "look once, which is the default")
	flags.DurationVar(&f.every, "every", 0, "look again and again after this `time`, from 1m, until something is wrong")
	flags.DurationVar(&f.pause, "pause", 20*time.Millisecond, "least `time` between two requests")
	flags.StringVar(&f.allow, "allow", "", "`addresses` and networks that may be asked in addition to public ones, with commas between")
	for _, name := range []string{"key", "state", "watch-file", "proof"} {
		_ = cmd.RegisterFlagCompletionFunc(name, usage.Files)
	}
	return cmd
}

// Bounds of what a monitor is given, and of its requests.
const (
	monitorPatience   = time.Minute // for a request
	monitorAnswer     = 20 << 20
	maxWatchFile      = 16 << 20
	maxProofFile      = 4 << 20
	shortestMonitored = time.Minute
	longestMonitored  = 30 * 24 * time.Hour
)

func (p *program) logMonitor(cmd *cobra.Command, f *monitorFlags, address string) error {
	m, err := p.newMonitor(cmd, f, address)
	if err != nil {
		return err
	}
	lock, err := lockState(f.state)
	if err != nil {
		return err
	}
	defer lock.Close()
	if m.State, err = readMonitorState(f.state); err != nil {
		return err
	}
	m.Save = func(s *transparency.MonitorState) error { return writeMonitorState(f.state, s) }
	for {
		err := p.lookOnce(cmd.Context(), m)
		if f.every == 0 || errors.Is(err, transparency.ErrRewritten) || err != nil && stele.KindOf(err) != stele.Unavailable {
			return err
		}
		if err != nil {
			if cmd.Context().Err() != nil {
				return err
			}
			fmt.Fprintf(p.stderr, "log monitor: %s\n", printable(stele.Reason(err).Error()))
		}
		if waitFor(cmd.Context(), f.every) != nil {
			return nil // it was told to stop
		}
	}
}

// newMonitor reads the flags.
func (p *program) newMonitor(cmd *cobra.Command, f *monitorFlags, address string) (*transparency.Monitor, error) {
	switch {
	case len(f.keys) == 0:
		return nil, usage.Errorf(cmd, "flag.monitor-key", "which key signs the log? Give --key with what 'stele log key' prints at the registry")
	case f.state == "":
		return nil, usage.Errorf(cmd, "flag.monitor-state", "where is kept what was seen? Give --state with a file")
	case f.once && f.every != 0:
		return nil, usage.Errorf(cmd, "flag.monitor-once", "--once and --every contradict each other")
	case f.every != 0 && (f.every < shortestMonitored || f.every > longestMonitored):
		return nil, usage.Errorf(cmd, "flag.monitor-every", "--every is a time from 1m to 720h")
	case f.pause < 0 || f.pause > time.Minute:
		return nil, usage.Errorf(cmd, "flag.monitor-pause", "--pause is a time from 0s to 1m")
	}
	url, err := transparency.LogURL(address)
	if err != nil {
		return nil, usage.Errorf(cmd, "", "{cause}", stele.Reason(err))
	}
	rule, err := allowedRule(cmd, f.allow)
	if err != nil {
		return nil, err
	}
	m := &transparency.Monitor{Now: p.now, Client: &transparency.TileClient{
		URL: url, HTTP: outbound.NewClient(rule, monitorPatience, monitorAnswer), Agent: "Stele/" + about().Version + " (log monitor)", Pause: f.pause, Wait: waitFor,
	}}
	if m.Keys, err = monitorKeys(cmd, f.keys); err != nil {
		return nil, err
	}
	m.Watch, err = p.monitored(cmd, f, m.Keys)
	return m, err
}

// monitorKeys reads the keys of the log and of witnesses.
func monitorKeys(cmd *cobra.Command, texts []string) (keys []transparency.PublicKey, err error) {
	logs := 0
	for _, text := range texts {
		if !strings.Contains(text, "+") { // the name of a file
			b, err := disk.ReadSome(text, maxKeyFile)
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		for line := range strings.Lines(text) { // a log whose key was rolled has several
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' { // as /.log/key has them
				continue
			}
			k, err := transparency.ParsePublicKey(line)
			if err != nil {
				return nil, usage.Errorf(cmd, "", "{cause}", stele.Reason(err))
			}
			if keys = append(keys, k); !k.Cosign {
				logs++
			}
		}
	}
	if logs == 0 {
		return nil, usage.Errorf(cmd, "flag.monitor-key", "which key signs the log? Give --key with what 'stele log key' prints at the registry")
	}
	return keys, nil
}

// monitored returns which names are watched.
func (p *program) monitored(cmd *cobra.Command, f *monitorFlags, keys []transparency.PublicKey) (*transparency.Watch, error) {
	schemes, err := p.schemes(cmd)
	if err != nil {
		return nil, err
	}
	w := &transparency.Watch{}
	add := func(name string) {
		if id, err := schemes.Parse(name); err == nil && !strings.HasSuffix(name, "*") {
			w.Name(id.String()) // as the log has it, however it was typed
		}
		w.Name(name)
	}
	for _, name := range f.watch {
		add(name)
	}
	if f.watchFile != "" {
		text, err := disk.ReadSome(f.watchFile, maxWatchFile)
		if err == nil && len(text) > maxWatchFile {
			err = refuse("log monitor", stele.Invalid, "log.watch-file-too-long", "{file} has more than {most} bytes", f.watchFile, maxWatchFile)
		}
		if err != nil {
			return nil, err
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			if line := strings.TrimSpace(lines.Text()); line != "" && line[0] != '#' {
				add(line)
			}
		}
	}
	for _, file := range f.proofs {
		if err := watchProof(w, file, keys); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// watchProof watches the name of a proof, if it is one of the log.
func watchProof(w *transparency.Watch, file string, keys []transparency.PublicKey) error {
	text, err := disk.ReadSome(file, maxProofFile)
	if err != nil {
		return err
	}
	var proof transparency.Proof
	if err := proof.UnmarshalText(text); err != nil {
		return refuse("log monitor", stele.Invalid, "log.proof-file-refused", "{file}: {cause}", file, stele.Reason(err))
	}
	if _, err := proof.Check(keys); err != nil {
		return refuse("log monitor", stele.Invalid, "log.proof-file-refused", "{file}: {cause}", file, stele.Reason(err))
	}
	return w.Proof(&proof)
}

// lookOnce looks at the log, and prints what there is to say.
func (p *program) lookOnce(ctx context.Context, m *transparency.Monitor) error {
	var failed error
	var bar *progress.Bar
	done := m.State.Read
	m.Progress = func(now, total uint64) {
		if bar == nil {
			bar = p.newProgress("log monitor", "entries", int64(total-done), func() int64 { return 0 })
		}
		if now > done {
			bar.Add(int(now - done))
		}
		done = now
		bar.Tick()
	}
	m.Report = func(e transparency.Event) { failed = errors.Join(failed, p.tellEvent(e)) }
	err := m.Look(ctx)
	if bar != nil {
		bar.End()
	}
	switch {
	case ctx.Err() != nil:
		err = refuse("log monitor", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	case p.json && errors.Is(err, transparency.ErrRewritten):
		failed = errors.Join(failed, p.printObject(struct {
			Event   string `json:"event"`
			Problem string `json:"problem"`
		}{"wrong", stele.Reason(err).Error()}))
	}
	return errors.Join(err, failed)
}

// tellEvent prints an event.
func (p *program) tellEvent(e transparency.Event) error {
	if p.json {
		return p.printObject(e)
	}
	switch e.Event {
	case "change":
		return p.say("change %d: %s %s, version %d, %s\n", e.Change, e.Kind, printable(e.Name), e.Version, e.At.Format(time.RFC3339))
	case "restored":
		gone := "no change that was seen is gone"
		if e.LastGone > 0 {
			gone = fmt.Sprintf("changes %d to %d of the former generation are gone", e.FirstGone, e.LastGone)
		}
		_, err := fmt.Fprintf(p.stderr, "warning: restored from a backup: %s; the log is now %s\n", gone, printable(e.Origin))
		return err
	}
	text := fmt.Sprintf("%s: %s entries, %s of them new", printable(e.Origin), grouped(int64(e.Size)), grouped(int64(e.New)))
	if len(e.Witnesses) > 0 {
		text += "; co-signed by " + printable(strings.Join(e.Witnesses, ", "))
	}
	return p.say("%s\n", text+"; nothing is wrong")
}

// lockState makes sure that one monitor has a state.
func lockState(path string) (*os.File, error) {
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, disk.FileError(err)
	}
	if err := disk.Lock(lock); err != nil {
		lock.Close()
		return nil, refuse("log monitor", stele.Unavailable, "log.monitor-state-in-use", "another monitor uses the state {file}; stop it, or give another file", path)
	}
	return lock, nil
}

// readMonitorState reads what was seen.
func readMonitorState(path string) (*transparency.MonitorState, error) {
	text, err := disk.ReadSome(path, transparency.MaxMonitorState)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return transparency.NewMonitorState(), nil
	case err != nil:
		return nil, err
	}
	return transparency.ParseMonitorState(text)
}

// writeMonitorState replaces the file, so that a crash leaves the one or the other.
func writeMonitorState(path string, s *transparency.MonitorState) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	next := path + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return disk.FileError(err)
	}
	if err := disk.CreatePrivate(next, append(text, '\n')); err != nil {
		return disk.FileError(err)
	}
	if err := os.Rename(next, path); err != nil {
		return disk.FileError(err)
	}
	if err := disk.Sync(filepath.Dir(path)); err != nil {
		return disk.FileError(err)
	}
	return nil
}
