package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/config"
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
	flags.StringSliceVar(&p.config.PURLHosts, "purl-host", environmentList("purl-host", nil), "hosts whose http names are PURLs, beside those of the registry; see 'stele purl-host' (environment: STELE_PURL_HOST)")
	flags.StringSliceVar(&p.config.CheckedShoulders, "checked", environmentList("checked", nil), "shoulders of ARKs whose names end in a check character, such as 12345/x5 (environment: STELE_CHECKED)")
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
		return nil, &usageError{err, cmd.CommandPath()}
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
	root.PersistentFlags().StringVar(&p.store, "store", os.Getenv("STELE_STORE"), "`URL` of the PostgreSQL database of the registry, instead of a folder; its password is better in PGPASSWORD, or in ~/.pgpass (environment: STELE_STORE)")
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
		return misuse(cmd, "flag.store-and-data", "--store and --data each name a registry; keep one")
	}
	if err := postgres.CheckURL(p.store); err != nil {
		return misuse(cmd, "", "--store: {cause}", err)
	}
	return nil
}

// logger returns a log of warnings on standard error.
func (p *program) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
