package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/wire/hdl"
)

// liveFlags say which Handle server is read while it serves, and who asks.
type liveFlags struct {
	server, site string
	identity     string
	key          string
	secret       string
	passphrase   string
	list         string
	parallel     int
	rate         int
}

// names of the flags, for those that need --live.
var liveNames = []string{"identity", "identity-key", "identity-secret", "identity-passphrase", "list", "parallel", "rate"}

func (f *liveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.server, "live", "", "with --from handle: `server` whose handles are read while it serves: HOST, HOST:PORT (default port 2641), or http://HOST:PORT for the protocol in HTTP; the arguments are prefixes")
	flags.StringVar(&f.site, "live-site", "", "the same, with the `file` of its site, which has its key: siteinfo.bin or siteinfo.json")
	flags.StringVar(&f.identity, "identity", "", "with --live: `INDEX:HANDLE` of the administrator who reads, such as 300:0.NA/20.500.12345")
	flags.StringVar(&f.key, "identity-key", "", "with --live: `file` of the administrator's private key, such as admpriv.bin")
	flags.StringVar(&f.secret, "identity-secret", "", "with --live: `file` with the administrator's secret, instead of a key")
	flags.StringVar(&f.passphrase, "identity-passphrase", "", "with --live: `file` with the passphrase of the private key, if it is encrypted")
	flags.StringVar(&f.list, "list", "", "with --live: `file` for the names of the handles, from which an interrupted import continues (default PREFIX.handles)")
	flags.IntVar(&f.parallel, "parallel", 4, "with --live: requests at once, 1 to 16")
	flags.IntVar(&f.rate, "rate", 200, "with --live: requests a second at most, 1 to 10000")
	for _, name := range []string{"live-site", "identity-key", "identity-secret", "identity-passphrase", "list"} {
		_ = cmd.RegisterFlagCompletionFunc(name, usage.Files) // it fails only for a flag that the command does not have
	}
}

// isGiven reports whether a server is read.
func (f *liveFlags) isGiven() bool { return f.server != "" || f.site != "" }

// check finds what is wrong with the flags.
func (f *liveFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	if !f.isGiven() {
		for _, name := range liveNames {
			if changed(name) {
				return usage.Errorf(cmd, "flag.without-live", "--{flag} is for reading a Handle server; name the server with --live or --live-site", name)
			}
		}
		return nil
	}
	switch {
	case f.server != "" && f.site != "":
		return usage.Errorf(cmd, "flag.live-twice", "--live and --live-site each name a server; keep one")
	case changed("format") || changed("map"):
		return usage.Errorf(cmd, "flag.live-files-only", "--format and --map are for files, and --live reads a server")
	case f.identity == "" || (f.key == "") == (f.secret == ""):
		return usage.Errorf(cmd, "flag.live-identity", "who reads? Give --identity INDEX:HANDLE, and either --identity-key FILE or --identity-secret FILE")
	case f.parallel < 1 || f.parallel > 16 || f.rate < 1 || f.rate > 10_000:
		return usage.Errorf(cmd, "flag.live-pace", "--parallel is a number from 1 to 16, and --rate one from 1 to 10000")
	}
	return nil
}

// liveServer is a Handle server that is read by an administrator, in several sessions: a session has one challenge at
// a time, and some servers ask for a proof with each handle.
type liveServer struct {
	free chan *hdlclient.Administrator
}

// newLiveServer returns a server that is read in so many sessions.
func newLiveServer(c *hdlclient.Client, who hdlclient.Identity, sessions int) (*liveServer, error) {
	l := &liveServer{free: make(chan *hdlclient.Administrator, sessions)}
	for range sessions {
		a, err := c.As(who, hdlclient.AdministratorOptions{})
		if err != nil {
			return nil, err
		}
		l.free <- a
	}
	return l, nil
}

// close ends the sessions. Those that do not end now end by themselves.
func (l *liveServer) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for range cap(l.free) {
		_ = (<-l.free).Close(ctx)
	}
}

// List implements [foreign.Server].
func (l *liveServer) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		a := <-l.free
		defer func() { l.free <- a }()
		for name, err := range a.List(ctx, prefix) {
			if !yield(name, err) {
				return
			}
		}
	}
}

// readTimeout bounds one handle: all messages of a challenge and its answer.
const readTimeout = time.Minute

// Read implements [foreign.Server].
func (l *liveServer) Read(ctx context.Context, handle string) ([]hdl.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	a := <-l.free // as many as are read at once
	defer func() { l.free <- a }()
	answer, err := a.Resolve(ctx, hdlclient.Query{Handle: handle})
	if f, ok := errors.AsType[*hdlclient.Failure](err); ok && f.Code == hdl.ValuesNotFound {
		return nil, nil // the handle has no values that an administrator may read
	}
	return answer.Values, err
}

// importLive imports the handles of prefixes from a Handle server.
func (p *program) importLive(cmd *cobra.Command, prefixes []string, o importOptions) error {
	who, err := o.live.who(cmd)
	if err != nil {
		return err
	}
	c, name, err := p.liveClient(cmd, &o.live)
	if err != nil {
		return err
	}
	server, err := newLiveServer(c, who, o.live.parallel)
	if err != nil {
		return usage.Errorf(cmd, "", "--identity: {cause}", stele.Reason(err))
	}
	head := foreign.ListHead{Server: name, Listed: p.now().UTC()}
	for _, text := range prefixes {
		text = strings.TrimSuffix(strings.TrimPrefix(text, destination.HandleMark), "/")
		if text == "" || strings.Contains(text, "/") {
			return usage.Errorf(cmd, "flag.live-not-a-prefix", `"{text}" is not a prefix; with --live the arguments are prefixes, such as 20.500.12345`, text)
		}
		if !slices.Contains(head.Prefixes, text) {
			head.Prefixes = append(head.Prefixes, text)
		}
	}
	return p.creating(cmd, func(ctx context.Context, l *Registry) error {
		defer server.close(ctx)
		return p.importListed(ctx, l, server, &head, o)
	})
}

// who returns the administrator who reads.
func (f *liveFlags) who(cmd *cobra.Command) (who hdlclient.Identity, err error) {
	index, handle, ok := strings.Cut(f.identity, ":")
	n, err := strconv.ParseUint(index, 10, 32)
	if !ok || err != nil || handle == "" {
		return who, usage.Errorf(cmd, "flag.live-identity-invalid", `"{text}" is not the identity of an administrator; write the index and the handle of their key, as in 300:0.NA/20.500.12345`, f.identity)
	}
	who.Reference = hdl.Reference{Handle: handle, Index: uint32(n)}
	if f.secret != "" {
		text, err := disk.ReadSome(f.secret, maxHandleKey)
		if err != nil {
			return who, err
		}
		who.Secret = bytes.TrimRight(text, "\r\n")
		if len(who.Secret) == 0 {
			return who, usage.Errorf(cmd, "flag.live-secret-empty", "{file} has no secret", f.secret)
		}
		return who, nil
	}
	file, err := disk.ReadSome(f.key, maxHandleKey)
	if err != nil {
		return who, err
	}
	var passphrase []byte
	if hdl.KeyFileEncrypted(file) {
		if f.passphrase == "" {
			return who, usage.Errorf(cmd, "flag.live-passphrase", "{file} is encrypted; name the file of its passphrase with --identity-passphrase", f.key)
		}
		if passphrase, err = disk.ReadSome(f.passphrase, maxHandleKey); err != nil {
			return who, err
		}
		passphrase = bytes.TrimRight(passphrase, "\r\n")
	}
	key, err := hdl.ParseKeyFile(file, passphrase)
	if err != nil {
		return who, usage.Errorf(cmd, "flag.live-not-a-key", "{file} is not a private key of the Handle System: {cause}", f.key, err)
	}
	who.Key = &key
	return who, nil
}

// liveClient returns a client of the server that the user names, and of no other: where the server refers to another
// one, the handle is not read.
func (p *program) liveClient(cmd *cobra.Command, f *liveFlags) (*hdlclient.Client, string, error) {
	roots, err := p.remote.roots()
	if err != nil {
		return nil, "", err
	}
	o := hdlclient.Options{Now: p.now, Rand: rand.Reader, RootCAs: roots, Transports: []hdl.Transport{hdl.TCP, hdl.HTTP}, Permit: func(netip.AddrPort) error {
		return stele.Messagef("import.live-other-server", "an import reads the server that is named, and no other")
	}}
	name := f.site
	if f.server != "" {
		place, err := hdlclient.ParsePlace(f.server)
		if err != nil {
			return nil, "", usage.Errorf(cmd, "", "--live: {cause}", stele.Reason(err))
		}
		o.Server, name = &place, place.String()
	} else if o.Sites, err = readSites(f.site); err != nil {
		return nil, "", err
	}
	c, err := hdlclient.New(o)
	return c, name, err
}

// importListed lists the handles, if no earlier run did, and imports them.
func (p *program) importListed(ctx context.Context, l *Registry, from *liveServer, head *foreign.ListHead, o importOptions) (err error) {
	if err := errors.Join(mayKeep(ctx, l, o), mayGrant(ctx, l, o)); err != nil {
		return err
	}
	path := o.live.list
	if path == "" {
		path = strings.ReplaceAll(head.Prefixes[0], string(filepath.Separator), "_") + ".handles"
	}
	if o.DryRun {
		folder, err := os.MkdirTemp("", "stele-list-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		o.Rejects = cmp.Or(o.Rejects, path+".rejects")
		path = filepath.Join(folder, filepath.Base(path))
	}
	if err := p.listLive(ctx, path, from, head, o.Again); err != nil {
		return err
	}
	list, err := bulk.OpenFile(path)
	if err != nil {
		return err
	}
	source, names, err := p.openLive(ctx, l, list, from, &o)
	if err != nil {
		return errors.Join(err, list.Close())
	}
	var run *bulk.FileImport
	err = p.runImport(ctx, l, o, func(o bulk.FileOptions) (*bulk.FileImport, error) {
		o.ChunkRows = min(o.ChunkRows, liveChunk) // what is read from a server is not read twice if it can be helped
		im, err := bulk.NewRowsImport(ctx, l, source, list, source.Key()+" "+names, o)
		im.Explain = func(err error) error { return err }
		run = im
		return im, err
	}, list.Size)
	err = errors.Join(err, source.Close(), list.Close())
	p.tellLeftOut(source.Report())
	if run != nil && run.Mark.Done && !o.DryRun {
		err = errors.Join(err, os.Remove(path)) // the next import lists anew
	}
	return err
}

// liveChunk is how many handles are committed together.
const liveChunk = 500

// listLive writes the list of handles, unless an earlier run has.
func (p *program) listLive(ctx context.Context, path string, from *liveServer, head *foreign.ListHead, again bool) error {
	if !again {
		has, err := foreign.ReadListHead(path)
		switch {
		case err != nil:
			return err
		case has != nil && !has.Same(head):
			return refuse("import", stele.Conflict, "import.live-list-of-another", "{file} lists handles of {prefixes} at {server}, for an import that is not complete; name another file with --list, or list anew with --again", path, strings.Join(has.Prefixes, ", "), has.Server)
		case has != nil:
			return nil
		}
	}
	bar := p.newProgress("list", "handles", 0, func() int64 { return 0 })
	count := 0
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	err := foreign.WriteList(ctx, path, *head, from, func() {
		bar.Add(1)
		count++
		select {
		case <-tick.C:
			bar.Tick()
		default:
		}
	})
	bar.End()
	if errors.Is(err, context.Canceled) {
		return refuse("import", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	}
	if err == nil {
		fmt.Fprintf(p.stderr, "stele: %s lists %s handles\n", printable(head.Server), grouped(int64(count)))
	}
	return err
}

// openLive returns the rows of the handles of a list.
func (p *program) openLive(ctx context.Context, l *Registry, list *bulk.File, from *liveServer, o *importOptions) (*foreign.Source, string, error) {
	reads, err := p.foreignOptions(ctx, l, o)
	if err != nil {
		return nil, "", err
	}
	source, err := foreign.OpenLive(ctx, list, foreign.LiveOptions{Server: from, Parallel: o.live.parallel, Pace: time.Second / time.Duration(o.live.rate), Waits: []time.Duration{time.Second, 5 * time.Second, 15 * time.Second}}, reads)
	if err != nil {
		return nil, "", err
	}
	o.Columns, o.Secrets, o.KeepTypes = nil, o.handle.secrets, reads.LeftOut()
	return source, o.live.identity, nil
}
