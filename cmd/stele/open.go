package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/scheme/purl"
	"github.com/stele-id/stele/store/postgres"
)

// registryFlags are the flags of all verbs that work on a registry, and of those
// that read identifiers.
func (p *program) registryFlags(root *cobra.Command) {
	data := os.Getenv("STELE_DATA")
	if data == "" {
		data = config.DefaultData
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.data, "data", data, "folder of the registry (environment: STELE_DATA)")
	p.storeFlag(root)
	p.secretFlag(root)
	p.remote.add(root)
	flags.StringSliceVar(&p.config.PURLHosts, "purl-host", environmentList("purl-host", nil), "PURL hosts, in addition to those of the registry; see 'stele purl-host' (environment: STELE_PURL_HOST)")
	flags.StringSliceVar(&p.config.CheckedShoulders, "checked", environmentList("checked", nil), "ARK shoulders whose names end in a check character, such as 12345/x5 (environment: STELE_CHECKED)")
}

// environmentList returns the list that the environment has for a setting, or else
// the default. Errors in it are reported where it is used.
func environmentList(name string, usual []string) []string {
	s := config.Find(name)
	text, given := os.LookupEnv(s.Variable())
	if !given {
		return usual
	}
	return config.SplitList(text)
}

// schemes makes the list of schemes that the flags ask for.
func (p *program) schemes(cmd *cobra.Command) (*stele.Schemes, error) {
	c := p.config
	c.PURLHosts = append(purl.DefaultHosts(), c.PURLHosts...)
	schemes, err := all.New(c)
	if err != nil {
		return nil, &usage.Error{Err: err, Command: cmd.CommandPath()}
	}
	return schemes, nil
}

// Registry is the registry that a verb works on.
type Registry = access.Registry

// creating is writing for the verbs with which a registry begins: they make one in the
// data folder if there is none.
func (p *program) creating(cmd *cobra.Command, do func(ctx context.Context, l *Registry) error) error {
	p.create = true
	return p.writing(cmd, do)
}

// writing calls do with the registry, and with a context that an interrupt ends: the
// registry of a server if one is named, or else that of the database or of the data folder.
// NotFound if there is none.
func (p *program) writing(cmd *cobra.Command, do func(ctx context.Context, l *Registry) error) error {
	far, err := p.isRemote(cmd)
	if err != nil {
		return err
	}
	if far {
		return p.atServer(cmd, do)
	}
	return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
		return do(ctx, access.NewLocal(r, p.now, p.place().String()))
	})
}

// reading is writing for verbs that only look.
func (p *program) reading(cmd *cobra.Command, do func(ctx context.Context, l *Registry) error) error {
	return p.writing(cmd, do)
}

// change has do change the record that has a name, and prints its identifier.
func (p *program) change(cmd *cobra.Command, name string, do func(ctx context.Context, l *Registry, id stele.ID) (*stele.Record, error)) error {
	return p.writing(cmd, func(ctx context.Context, l *Registry) error {
		id, err := l.Parse(name)
		if err != nil {
			return err
		}
		rec, err := do(ctx, l, id)
		if err != nil {
			return err
		}
		return p.printName(p.stdout, rec)
	})
}

// onPrefix calls do with the registry and the namespace that a prefix stands for.
func (p *program) onPrefix(cmd *cobra.Command, prefix string, do func(ctx context.Context, l *Registry, key stele.NamespaceKey) error) error {
	return p.reading(cmd, func(ctx context.Context, l *Registry) error {
		key, err := l.ParsePrefix(prefix)
		if err != nil {
			return err
		}
		return do(ctx, l, key)
	})
}

// hasFolder makes sure that the registry that the flags name exists.
func (p *program) hasFolder() error { return p.place().Exists() }

// inRegistry opens the registry, calls do with a context that an interrupt ends and
// in which the administrator of the folder acts, and closes the registry.
func (p *program) inRegistry(cmd *cobra.Command, do func(ctx context.Context, r *registry.Registry) error) (err error) {
	schemes, err := p.schemes(cmd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p.brief = true
	r, err := p.openRegistry(ctx, schemes, p.logger(), resolver.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return do(byCommand(ctx), r)
}

// openRegistry opens the registry in the data folder, or in the database that is named
// instead.
func (p *program) openRegistry(ctx context.Context, schemes *stele.Schemes, log *slog.Logger, o resolver.Options) (*registry.Registry, error) {
	return registry.Open(ctx, p.place(), schemes, p.openOptions(log, o))
}

// openOptions are how the flags want a registry opened.
func (p *program) openOptions(log *slog.Logger, o resolver.Options) registry.OpenOptions {
	usual := purl.DefaultHosts()
	open := registry.OpenOptions{
		Options: registry.Options{Now: p.now, Random: rand.IntN, Log: log, Resolver: o, Secrets: p.secrets, BlockSize: p.block, Notify: p.notify, Transfer: p.transfer},
		Brief:   p.brief, Create: p.create, DryRun: p.rehearse, MayCreate: p.refuseSecond, OnCreate: p.tellCreated,
		Hosts:  slices.DeleteFunc(slices.Clone(p.config.PURLHosts), func(h string) bool { return slices.Contains(usual, strings.ToLower(h)) }),
		OnHost: p.tellHost,
	}
	if !p.brief {
		open.OnHost = func(host string) { log.Info("a PURL host is kept in the registry from now on", "host", host) }
	}
	return open
}

// openStore opens the store of a registry that exists, for a short time.
func (p *program) openStore(ctx context.Context, at registry.Place, log *slog.Logger) (stele.Store, error) {
	o := p.openOptions(log, resolver.Options{})
	o.Brief = true
	return at.OpenStore(ctx, o)
}

// tellCreated says on standard error that a new registry was made: a person who meant
// another folder sees it at once.
func (p *program) tellCreated(folder string) {
	if p.rehearse {
		fmt.Fprintf(p.stderr, "stele: there is no registry in %s yet; the dry run takes an empty one\n", printable(folder))
		return
	}
	whole, err := filepath.Abs(folder)
	if err != nil {
		whole = folder
	}
	fmt.Fprintf(p.stderr, "stele: made a new registry in %s\n", printable(whole))
}

// refuseSecond refuses to make a registry in the default folder on a machine whose server
// keeps its own elsewhere: the administrator most likely means that one.
func (p *program) refuseSecond(folder string) error {
	if p.named || p.machineConfig == "" {
		return nil
	}
	if _, err := os.Stat(p.machineConfig); err != nil {
		return nil // it does not exist, or this user may not read it
	}
	c := config.Load(p.machineConfig, nil, nil)
	at := registry.Place{URL: c.Store, Folder: c.Data}
	if !at.IsDatabase() {
		mine, err1 := filepath.Abs(folder)
		theirs, err2 := filepath.Abs(at.Folder)
		if err1 != nil || err2 != nil || mine == theirs || at.Folder == "" {
			return nil
		}
	}
	return refuse("open", stele.Conflict, "command.registry-elsewhere", `there is no registry in "{folder}", and a second one is not made: the registry of this machine is {registry}, as {file} says; add {flag}, or --server with the address of its server (to make a second registry here, add --data {folder})`,
		folder, at, p.machineConfig, at.Flag())
}

// place returns where the registry is that the flags name.
func (p *program) place() registry.Place {
	if p.store != "" {
		return registry.Place{URL: p.store}
	}
	return registry.Place{Folder: p.data}
}

// storeFlag adds the flag that names a database.
func (p *program) storeFlag(root *cobra.Command) {
	root.PersistentFlags().StringVar(&p.store, "store", os.Getenv("STELE_STORE"), "`URL` of the PostgreSQL database of the registry, instead of a folder; put the password in PGPASSWORD or in ~/.pgpass (environment: STELE_STORE)")
	// It fails only for a flag that the command does not have.
	_ = root.RegisterFlagCompletionFunc("store", cobra.NoFileCompletions)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if dry := cmd.Flags().Lookup("dry-run"); dry != nil {
			p.rehearse = dry.Value.String() == "true"
		}
		err := p.settlePlace(cmd)
		p.settleSecrets()
		return err
	}
}

// settlePlace decides between a folder and a database. What is named on the command line
// wins over what the environment names.
func (p *program) settlePlace(cmd *cobra.Command) error {
	flags := cmd.Flags()
	p.named = flags.Changed("data") || os.Getenv("STELE_DATA") != ""
	if !flags.Changed("store") {
		if flags.Changed("data") {
			p.store = ""
		}
		return nil
	}
	if flags.Changed("data") {
		return usage.Errorf(cmd, "flag.store-and-data", "--store and --data each name a registry; keep one")
	}
	if err := postgres.CheckURL(p.store); err != nil {
		return usage.Errorf(cmd, "", "--store: {cause}", err)
	}
	return nil
}

// logger returns a log of warnings on standard error.
func (p *program) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// remoteFlags say which server keeps the registry, and how the client connects to it.
type remoteFlags struct {
	server    string
	tokenFile string
	authority string
	plainHTTP bool
}

// tokenVariable has the token in the environment. There is no flag for the token
// itself: every user of a machine can read command lines.
const tokenVariable = "STELE_TOKEN"

func (f *remoteFlags) add(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&f.server, "server", os.Getenv("STELE_SERVER"), "`URL` of a server whose registry to use, instead of a folder; put the token in STELE_TOKEN (environment: STELE_SERVER)")
	flags.StringVar(&f.tokenFile, "token-file", os.Getenv("STELE_TOKEN_FILE"), "`file` with the token, instead of STELE_TOKEN (environment: STELE_TOKEN_FILE)")
	flags.StringVar(&f.authority, "ca", os.Getenv("STELE_CA"), "`file` with CA certificates (PEM) to trust in addition to those of the system (environment: STELE_CA)")
	flags.BoolVar(&f.plainHTTP, "plain-http", false, "send the token to another machine over http, where every machine on the path can read it")
	// It fails only for a flag that the command does not have.
	_ = root.RegisterFlagCompletionFunc("server", cobra.NoFileCompletions)
}

// onFolder marks a command that works on a folder of its own machine, and refuses a
// server that is named on the command line.
func onFolder(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if flag := cmd.InheritedFlags().Lookup("server"); flag != nil && flag.Changed {
			return usage.Errorf(cmd, "flag.server-not-supported", "'{command}' works where it runs, and not on a --server; name a folder with --data, or a database with --store", cmd.CommandPath())
		}
		return run(cmd, args)
	}
	return cmd
}

// isRemote reports whether a server keeps the registry. A folder or a database that is
// named on the command line wins over a server that the environment names.
func (p *program) isRemote(cmd *cobra.Command) (bool, error) {
	flags := cmd.Flags()
	switch {
	case p.remote.server == "":
		return false, nil
	case !flags.Changed("data") && !flags.Changed("store"):
		return true, nil
	case flags.Changed("server") && flags.Changed("store"):
		return false, usage.Errorf(cmd, "flag.server-and-store", "--server and --store each name a registry; keep one")
	case flags.Changed("server"):
		return false, usage.Errorf(cmd, "flag.server-and-data", "--server and --data each name a registry; keep one")
	}
	return false, nil
}

// atServer calls do with the registry of the server.
func (p *program) atServer(cmd *cobra.Command, do func(ctx context.Context, l *Registry) error) error {
	return p.withServer(cmd, func(ctx context.Context, r *remote.Registry) error {
		return do(ctx, access.NewRemote(r, p.now))
	})
}

// withServer is atServer for verbs that only servers support.
func (p *program) withServer(cmd *cobra.Command, do func(ctx context.Context, r *remote.Registry) error) error {
	schemes, err := p.schemes(cmd)
	if err != nil {
		return err
	}
	r, err := p.remote.open(cmd, schemes)
	if err != nil {
		return err
	}
	defer r.Close()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := learnFarHosts(ctx, r); err != nil {
		return p.remote.hint(err)
	}
	return p.remote.hint(do(ctx, r))
}

// hint adds to an error which flag helps; its kind stays.
func (f *remoteFlags) hint(err error) error {
	token, _ := f.token() // it was read before
	switch {
	case errors.Is(err, remote.ErrUntrusted) && f.authority == "":
		return stele.Messagef("flag.ca-helps", "{cause} with --ca FILE", err)
	case errors.Is(err, stele.Unauthenticated) && token == "":
		return stele.Messagef("flag.token-helps", "{cause}; it belongs in STELE_TOKEN, or in a file that --token-file names", err)
	}
	return err
}

// open makes a client of the server's registry.
func (f *remoteFlags) open(cmd *cobra.Command, schemes *stele.Schemes) (*remote.Registry, error) {
	token, err := f.token()
	if err != nil {
		return nil, err
	}
	roots, err := f.roots()
	if err != nil {
		return nil, err
	}
	r, err := remote.New(f.server, token, remote.Options{Schemes: schemes, Roots: roots, PlainHTTP: f.plainHTTP})
	if err != nil {
		return nil, unsent(cmd, "--server", err)
	}
	return r, nil
}

// unsent is the error of a flag that names a server to which nothing can be sent.
func unsent(cmd *cobra.Command, flag string, err error) error {
	if errors.Is(err, remote.ErrInTheClear) {
		return usage.Errorf(cmd, "flag.server-plain-http", "{flag}: {cause}, or give --plain-http if the network between is trusted", flag, errors.Unwrap(err))
	}
	return usage.Errorf(cmd, "", "{flag}: {cause}", flag, errors.Unwrap(err))
}

// token returns the token: that of the file if one is named, or else that of the
// environment; "" if there is none.
func (f *remoteFlags) token() (string, error) {
	if f.tokenFile == "" {
		return strings.TrimSpace(os.Getenv(tokenVariable)), nil
	}
	return remote.ReadToken(f.tokenFile)
}

// roots returns the authorities that are trusted; nil for the system's.
func (f *remoteFlags) roots() (*x509.CertPool, error) {
	if f.authority == "" {
		return nil, nil
	}
	return remote.ReadRoots(f.authority)
}

// tellHost says on standard error that a host was added.
func (p *program) tellHost(host string) {
	fmt.Fprintf(p.stderr, "stele: %s is a PURL host of this registry from now on; --purl-host is not needed again\n", printable(host))
}

// learnFarHosts adds the hosts of the server's registry to the schemes of a client. A
// server of an earlier version has no list; its names are read as before.
func learnFarHosts(ctx context.Context, r *remote.Registry) error {
	_, err := r.PURLHosts(ctx)
	if errors.Is(err, stele.Unavailable) || errors.Is(err, remote.ErrUntrusted) || ctx.Err() != nil {
		return err
	}
	return nil
}

// parseName reads an identifier. A text that can't be read may be a PURL under a host of the
// registry: then parseName gets the hosts, from the server if one is named, or else from the
// local registry, and reads it again.
func (p *program) parseName(cmd *cobra.Command, schemes *stele.Schemes, server, name string) (stele.ID, error) {
	id, err := schemes.Parse(name)
	if err == nil || !p.learnFor(cmd, schemes, server, name) {
		return id, err
	}
	return schemes.Parse(name)
}

// learnFor adds the PURL hosts of a registry to schemes, if a text may be a PURL. It
// reports whether it did: where there is no registry, or it can't be read, the text is
// read as before.
func (p *program) learnFor(cmd *cobra.Command, schemes *stele.Schemes, server, name string) bool {
	if !strings.Contains(name, "://") {
		return false // it has no host
	}
	return p.consult(cmd, schemes, server, func(r *remote.Registry) error {
		_, err := r.PURLHosts(cmd.Context())
		return err
	}, func(store stele.Store) error {
		return registrar.New(store, schemes, registrar.Options{Now: p.now}).LearnHosts(cmd.Context())
	})
}

// consult reads the registry of a server, or else the local one, for a verb that works
// without one too. It reports whether that was possible.
func (p *program) consult(cmd *cobra.Command, schemes *stele.Schemes, server string, far func(*remote.Registry) error, near func(stele.Store) error) bool {
	if server != "" {
		at := p.remote
		at.server = server
		r, err := at.open(cmd, schemes)
		if err != nil {
			return false
		}
		defer r.Close()
		return far(r) == nil
	}
	if p.place().Exists() != nil {
		return false
	}
	store, err := p.openStore(cmd.Context(), p.place(), slog.New(slog.DiscardHandler))
	if err != nil {
		return false
	}
	err = near(store)
	return errors.Join(err, store.Close()) == nil
}

// serverOf returns the server whose registry a verb works on; "" if the registry is local.
func (p *program) serverOf(cmd *cobra.Command) (string, error) {
	far, err := p.isRemote(cmd)
	if err != nil || !far {
		return "", err
	}
	return p.remote.server, nil
}

// byCommand returns a context in which a command acts on a registry that it has open: as its
// administrator, and for the audit trail as the user of the operating system.
func byCommand(ctx context.Context) context.Context {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return auth.WithOrigin(auth.With(ctx, auth.Local()), auth.Origin{Via: "command", System: name})
}
