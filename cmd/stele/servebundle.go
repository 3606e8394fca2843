package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/internal/wording"
	"github.com/stele-id/stele/registry/frozen"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/httpd/translog"
	"github.com/stele-id/stele/server"
)

// bundleServed refuses flags that do not go with --bundle, or only with it.
func (o *serveOptions) bundleServed(cmd *cobra.Command, c *config.Config) error {
	switch {
	case o.bundle == "" && len(o.keys) > 0:
		return usage.Errorf(cmd, "flag.key-without-bundle", "--key goes with --bundle")
	case o.bundle == "":
		return nil
	case o.demo:
		return usage.Errorf(cmd, "flag.bundle-with-demo", "--bundle and --demo are two registries; keep one")
	case c.Origin("store") == config.Flag:
		return usage.Errorf(cmd, "flag.store-with-bundle", "a bundle is served from a folder of its own; leave --store out")
	case len(c.DNS) > 0 || len(c.DNSTLS) > 0:
		return usage.Errorf(cmd, "flag.dns-with-bundle", "a bundle has no keys of zones, so that its names are not published in the DNS; leave --dns and --dns-tls out")
	}
	return nil
}

// serveBundle checks a bundle, makes a registry of it unless an earlier run did, and serves that.
func (p *program) serveBundle(cmd *cobra.Command, running, hurry context.Context, run server.Options, o serveOptions) error {
	folder, remove, err := archiveFolder(run.Config)
	if err != nil {
		return err
	}
	defer remove()
	read, err := p.bundleOptions(cmd, o.keys)
	if err != nil {
		return err
	}
	p.data, p.store, p.secrets = folder, "", nil
	open := p.openOptions(p.logger(), resolver.Options{})
	open.MayCreate, open.OnCreate, open.OnHost = nil, nil, nil
	check := p.newProgress("check", "versions", 0, nil)
	read.Schemes, read.Progress = run.Schemes, check.Add
	ended := check.End
	a, err := func() (*frozen.Archive, error) {
		defer waitForGarbage(false)()
		return frozen.Open(running, o.bundle, folder, frozen.Options{Registry: open, Bundle: read, Loading: func(versions int64) func(int) {
			check.End()
			bar := p.newProgress("load", "versions", versions, nil)
			ended = bar.End
			return bar.Add
		}})
	}()
	ended()
	switch {
	case running.Err() != nil:
		return refuse("serve", stele.Unavailable, "command.interrupted", "interrupted; give the same command again to go on")
	case err != nil:
		return err
	}
	if !a.Trusted {
		fmt.Fprintln(p.stderr, "stele: the bundle was checked with the key that it has itself: it is whole, but any registry may have made it; give the key of the registry's log with --key")
	}
	fmt.Fprintf(p.stderr, "stele: a frozen archive of %s as of %s, with %s records\n", printable(a.Head.Origin), wording.Moment(a.Head.At), grouped(int64(a.Counts.Records)))
	p.data, p.create = a.Place.Folder, false
	run.Frozen = &server.Frozen{Origin: a.Head.Origin, At: a.Head.At, Log: a.Log}
	for _, k := range a.Log.Keys() {
		run.Frozen.Keys = append(run.Frozen.Keys, translog.Key{PublicKey: k.PublicKey, Created: k.Created, Retired: k.Retired})
	}
	return p.runServer(running, hurry, run)
}

// archiveFolder returns the folder in which registries of bundles are made: that of --data, or else a temporary one, which remove
// removes. A folder that the environment or a file names for all verbs is that of another registry.
func archiveFolder(c *config.Config) (folder string, remove func(), err error) {
	if c.Origin("data") != config.Flag {
		folder, err := os.MkdirTemp("", "stele-bundle-")
		if err != nil {
			return "", nil, disk.FileError(err)
		}
		return folder, func() { _ = os.RemoveAll(folder) }, nil // it is a temporary folder
	}
	return filepath.Clean(c.Data), func() {}, nil
}
