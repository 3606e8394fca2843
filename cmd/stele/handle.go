package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/server"
	"github.com/stele-id/stele/wire/hdl"
)

func (p *program) handleCommand() *cobra.Command {
	return usage.Family(&cobra.Command{
		Use:   "handle",
		Short: "Set up the registry as a site of the Handle System",
		Long: `Handle sets up the registry as a site of the Handle System, so that clients of its
protocol find and change the handles of a prefix here. 'stele serve --hdl ADDRESS' answers
them. With --server the server keeps the key of the site, and the private key of a prefix's
administrator is made where the command runs.`,
		Example: `  stele handle setup 20.500.12345 --address 192.0.2.7 --out handle
  stele handle show
  stele handle roll`,
	}, p.handleSetupCommand(), p.handleShowCommand(), p.handleRollCommand())
}

// handleSites sets up the Handle System, here or at a server.
type handleSites interface {
	HandleSite(ctx context.Context) (*apijson.HandleSite, error)
	SetUpHandles(ctx context.Context, prefix string, want apijson.HandleSetup) (*apijson.HandlePrefix, error)
	RollHandleSite(ctx context.Context) (*apijson.HandleSite, error)
}

// withHandles calls do with the site of the registry.
func (p *program) withHandles(cmd *cobra.Command, do func(ctx context.Context, s handleSites) error) error {
	far, err := p.isRemote(cmd)
	if err != nil {
		return err
	}
	if far {
		return p.withServer(cmd, func(ctx context.Context, r *remote.Registry) error { return do(ctx, r) })
	}
	return p.inRegistry(cmd, func(ctx context.Context, r *registry.Registry) error {
		return do(ctx, server.NewHandleSites(r, p.now))
	})
}

// handleFlags are how a prefix is set up.
type handleFlags struct {
	addresses, mirrors  []string
	port, http          uint16
	about, org, contact string
	mail, key, out      string
}

func (f *handleFlags) add(cmd *cobra.Command, mark string) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.addresses, mark+"address", nil, "public IP `address` of a server that answers the Handle protocol from this registry; may be repeated")
	flags.StringArrayVar(&f.mirrors, mark+"mirror", nil, "public IP `address` of a server that only answers queries; may be repeated")
	flags.Uint16Var(&f.port, mark+"port", 2641, "`port` of the protocol over UDP and TCP, as clients reach it")
	flags.Uint16Var(&f.http, mark+"http-port", 0, "`port` of the protocol in HTTP, as clients reach it (0: not offered)")
	flags.StringVar(&f.about, mark+"about", "", "description of the site, for people")
	flags.StringVar(&f.org, mark+"organisation", "", "organisation, for the registrar of the prefix")
	flags.StringVar(&f.contact, mark+"contact", "", "`name` of the person whom the registrar asks")
	flags.StringVar(&f.mail, mark+"mail", "", "mail `address` of that person")
	flags.StringVar(&f.key, mark+"admin-key", "", "`file` with the public key of the prefix's administrator, such as admpub.bin (default: a new key is made)")
	flags.StringVar(&f.out, mark+"out", "handle", "`folder` for what is made: sitebndl.zip and, with a new key, admpriv.bin")
}

func (p *program) handleSetupCommand() *cobra.Command {
	var f handleFlags
	cmd := &cobra.Command{
		Use:   "setup PREFIX",
		Short: "Make a prefix one that the Handle protocol serves",
		Long: `Setup makes the key of the site, if there is none yet, and the record 0.NA/PREFIX, which
says where the prefix is served and who administers it. It writes sitebndl.zip for the
registrar of the prefix, and the private key of the administrator, which is nowhere
else: keep it. The namespace must be there; 'stele ns add PREFIX/ --handle-server' does
both.

Run it again after the addresses have changed, and send the new sitebndl.zip.`,
		Example: `  stele handle setup 20.500.12345 --address 192.0.2.7 --address 2001:db8::7 --out handle
  stele handle setup 20.500.12345 --address 192.0.2.7 --admin-key admpub.bin --contact 'Ann Librarian' --mail ann@example.org`,
		Args: usage.OneArgument("the prefix"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withHandles(cmd, func(ctx context.Context, s handleSites) error {
				return p.setUpHandles(ctx, cmd, s, args[0], &f)
			})
		},
	}
	f.add(cmd, "")
	return usage.NeverFiles(cmd)
}

// setUpHandles sets up a prefix, and says what to do next.
func (p *program) setUpHandles(ctx context.Context, cmd *cobra.Command, s handleSites, prefix string, f *handleFlags) error {
	want := apijson.HandleSetup{Addresses: f.addresses, Mirrors: f.mirrors, Port: f.port, HTTPPort: f.http, About: f.about,
		Organisation: f.org, Contact: f.contact, Mail: f.mail}
	if f.key != "" {
		data, err := disk.ReadSome(f.key, maxHandleKey)
		if err != nil {
			return disk.FileError(err)
		}
		if _, err := hdl.ParsePublicKey(data); err != nil {
			return usage.Errorf(cmd, "flag.not-a-handle-key", "{file} is not a public key of the Handle System: {cause}", f.key, err)
		}
		want.AdminKey = base64.StdEncoding.EncodeToString(data)
	}
	if err := os.MkdirAll(f.out, 0o700); err != nil {
		return disk.FileError(err)
	}
	key := ""
	made, err := s.SetUpHandles(ctx, prefix, want)
	if code, _ := stele.CodeOf(err); err != nil && code == handles.NeedsAdminKey && want.AdminKey == "" {
		// The private key is kept before a record says that it is the administrator's: there is no other copy, here or at the server.
		if key, want.AdminKey, err = keepAdminKey(f.out); err != nil {
			return err
		}
		made, err = s.SetUpHandles(ctx, prefix, want)
	}
	if err != nil {
		return err
	}
	if key != "" && base64.StdEncoding.EncodeToString(made.AdminKey) != want.AdminKey {
		return refuse("set up handles", stele.Conflict, "handle.set-up-meanwhile", "another administrator has set up {prefix} meanwhile, with another key; the key in {file} is of no use, remove it", made.Prefix, key)
	}
	zip := filepath.Join(f.out, "sitebndl.zip")
	if err := os.WriteFile(zip, made.Bundle, 0o644); err != nil {
		return disk.FileError(err)
	}
	return p.printSetup(made, zip, key)
}

// keepAdminKey makes a key for the administrator of a prefix, writes the private one to a file of the folder, and returns the
// public one in base64.
func keepAdminKey(folder string) (file, public string, err error) {
	private, half, err := handles.NewAdminKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	file = disk.FreeName(filepath.Join(folder, "admpriv.bin"))
	if err := disk.CreatePrivate(file, private); err != nil {
		return "", "", disk.FileError(err)
	}
	return file, base64.StdEncoding.EncodeToString(half), nil
}

// maxHandleKey bounds the file of a key of the Handle System.
const maxHandleKey = 64 << 10

func (p *program) printSetup(made *apijson.HandlePrefix, zip, key string) error {
	if p.json {
		return p.printObject(struct {
			Prefix string `json:"prefix"`
			Record string `json:"record"`
			Serial uint16 `json:"serial"`
			Admin  string `json:"administrator"`
			Bundle string `json:"bundle"`
			Key    string `json:"key,omitempty"`
		}{made.Prefix, made.Record, made.Serial, made.Administrator, zip, key})
	}
	text := "site " + zip + "\nrecord " + printable(made.Record) + "\nadministrator " + printable(made.Administrator) + "\n"
	if key != "" {
		text += "key " + key + "\n"
	}
	if err := p.say("%s", text); err != nil {
		return err
	}
	next := "\nWhat to do next:\n"
	if key != "" {
		next += "  1. Keep " + key + " safe: it administers the prefix, and there is no other copy.\n"
	} else {
		next += "  1. The administrator of the prefix keeps the key that they have.\n"
	}
	next += `  2. Send ` + zip + ` to the registrar of the prefix. Which of its parts a registrar
     checks is not known here; ask them if they want it in another form.
  3. Serve it: stele serve --hdl 0.0.0.0:2641, and open the port for UDP and TCP.
  4. Look at it from outside: stele doctor
`
	_, err := p.stderr.Write([]byte(next))
	return err
}

func (p *program) handleShowCommand() *cobra.Command {
	return usage.NeverFiles(&cobra.Command{
		Use:     "show",
		Short:   "Show the site by which the Handle System knows this registry",
		Long:    "Show prints the number, the servers and the age of the site. It does not print keys.",
		Example: "  stele handle show\n  stele handle show --json",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withHandles(cmd, func(ctx context.Context, s handleSites) error {
				site, err := s.HandleSite(ctx)
				if code, _ := stele.CodeOf(err); err != nil && code == handles.SiteMissing {
					return p.say("%s", "no site; set one up with 'stele ns add PREFIX/ --handle-server'\n")
				}
				if err != nil {
					return err
				}
				return p.printSite(site)
			})
		},
	})
}

// printSite prints a site.
func (p *program) printSite(site *apijson.HandleSite) error {
	if p.json {
		return p.printObject(site)
	}
	if err := p.say("serial %d\n", site.Serial); err != nil {
		return err
	}
	for _, s := range site.Servers {
		for _, d := range s.Interfaces {
			what := "queries"
			if d.Admin {
				what = "queries and changes"
			}
			if err := p.say("server %d %s %s %d %s\n", s.ID, printable(s.Address), printable(d.Protocol), d.Port, what); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *program) handleRollCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "roll",
		Short: "Replace the key of the site",
		Long: `Roll makes another key for the site, and brings the records of all prefixes up to date.
Servers use it within seconds. Clients that still know the site by its former number
get answers that the former key signed, so that nothing is refused while the new site
spreads; the next roll ends that. Run 'stele handle setup PREFIX' afterwards for the
sitebndl.zip of each prefix, and send it to its registrar.`,
		Example: "  stele handle roll\n  stele handle setup 20.500.12345 --address 192.0.2.7",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withHandles(cmd, func(ctx context.Context, s handleSites) error {
				site, err := s.RollHandleSite(ctx)
				if err != nil {
					return err
				}
				return p.printSite(site)
			})
		},
	}
	return usage.NeverFiles(cmd)
}
