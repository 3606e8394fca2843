package main

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/registry/access"
)

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
	flags.StringVar(&f.server, "server", os.Getenv("STELE_SERVER"), "`URL` of the server whose registry it is, instead of a folder; the token is in the environment, in STELE_TOKEN (environment: STELE_SERVER)")
	flags.StringVar(&f.tokenFile, "token-file", os.Getenv("STELE_TOKEN_FILE"), "`file` with the token, instead of STELE_TOKEN (environment: STELE_TOKEN_FILE)")
	flags.StringVar(&f.authority, "ca", os.Getenv("STELE_CA"), "`file` with certificates (PEM) of authorities to trust beside the system's (environment: STELE_CA)")
	flags.BoolVar(&f.plainHTTP, "plain-http", false, "send the token to another machine over http, where everybody on the way can read it")
	// It fails only for a flag that the command does not have.
	_ = root.RegisterFlagCompletionFunc("server", cobra.NoFileCompletions)
}

// onFolder marks a command that works on a folder of its own machine, and refuses a
// server that is named on the command line.
func onFolder(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if flag := cmd.InheritedFlags().Lookup("server"); flag != nil && flag.Changed {
			return misuse(cmd, "flag.server-not-supported", "'{command}' works where it runs, and not on a --server; name a folder with --data, or a database with --store", cmd.CommandPath())
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
		return false, misuse(cmd, "flag.server-and-store", "--server and --store each name a registry; keep one")
	case flags.Changed("server"):
		return false, misuse(cmd, "flag.server-and-data", "--server and --data each name a registry; keep one")
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
	switch {
	case errors.Is(err, remote.ErrInTheClear):
		return nil, misuse(cmd, "flag.server-plain-http", "--server: {cause}, or give --plain-http if the network between is trusted", errors.Unwrap(err))
	case err != nil:
		return nil, misuse(cmd, "", "--server: {cause}", errors.Unwrap(err))
	}
	return r, nil
}

// token returns the token: that of the file if one is named, or else that of the
// environment; "" if there is none.
func (f *remoteFlags) token() (string, error) {
	if f.tokenFile == "" {
		return strings.TrimSpace(os.Getenv(tokenVariable)), nil
	}
	const most = 4096
	text, err := disk.ReadSome(f.tokenFile, most)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(text) > most {
		return "", refuse("open", stele.Invalid, "token-file.empty", `"{file}" has no token in it; put the one there that 'stele token create' printed`, f.tokenFile)
	}
	return token, nil
}

// roots returns the authorities that are trusted; nil for the system's.
func (f *remoteFlags) roots() (*x509.CertPool, error) {
	if f.authority == "" {
		return nil, nil
	}
	const most = 1 << 20
	text, err := disk.ReadSome(f.authority, most)
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a system without any
	}
	if len(text) > most || !roots.AppendCertsFromPEM(text) {
		return nil, refuse("open", stele.Invalid, "ca-file.certificate-missing", `"{file}" has no certificate in it; name a file in PEM, which has -----BEGIN CERTIFICATE-----`, f.authority)
	}
	return roots, nil
}
