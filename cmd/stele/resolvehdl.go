package main

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/wire/hdl"
)

// hdlFlags say which servers of the Handle System are asked.
type hdlFlags struct {
	server string
	site   string
	root   string

	permit func(netip.AddrPort) error // of servers that records name; nil: any address
}

func (f *hdlFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.server, "hdl", "", "`server` to ask by the Handle protocol: HOST, HOST:PORT (default port 2641), or http://HOST:PORT for the protocol in HTTP")
	flags.StringVar(&f.site, "hdl-site", "", "`file` of the site to ask by the Handle protocol: siteinfo.bin, siteinfo.json or root_info")
	flags.StringVar(&f.root, "hdl-root", "", "`file` of the root of the Handle System, which knows the site of each prefix: root_info, siteinfo.bin or siteinfo.json")
	usage.Choices(cmd, "hdl", "127.0.0.1:", "http://")
	for _, name := range []string{"hdl-site", "hdl-root"} {
		// It fails only for a flag that the command does not have.
		_ = cmd.RegisterFlagCompletionFunc(name, usage.Files)
	}
}

// isGiven reports whether a flag about the Handle protocol was given.
func (f *hdlFlags) isGiven(cmd *cobra.Command) bool {
	changed := cmd.Flags().Changed
	return changed("hdl") || changed("hdl-site") || changed("hdl-root")
}

// handleWay makes the way by the Handle protocol.
func (p *program) handleWay(f *resolveFlags, schemes *stele.Schemes, timeout time.Duration) (client.Way, error) {
	given := 0
	for _, text := range []string{f.hdl.server, f.hdl.site, f.hdl.root} {
		if text != "" {
			given++
		}
	}
	if given != 1 {
		return nil, usage.Errorf(f.cmd, "flag.hdl-one-of-three", "where does the Handle protocol begin? Name one of --hdl SERVER, --hdl-site FILE and --hdl-root FILE")
	}
	roots, err := p.remote.roots()
	if err != nil {
		return nil, err
	}
	o := hdlclient.Options{Now: p.now, Rand: rand.Reader, RootCAs: roots, Permit: f.hdl.permit}
	switch {
	case f.hdl.server != "":
		place, err := hdlclient.ParsePlace(f.hdl.server)
		if err != nil {
			return nil, usage.Errorf(f.cmd, "", "--hdl: {cause}", stele.Reason(err))
		}
		o.Server = &place
	case f.hdl.site != "":
		o.Sites, err = readSites(f.hdl.site)
	default:
		o.Root, err = readSites(f.hdl.root)
	}
	if err != nil {
		return nil, err
	}
	c, err := hdlclient.New(o)
	if err != nil {
		return nil, err
	}
	return client.NewHandle(client.HandleOptions{Schemes: schemes, Client: c, Now: p.now, Random: mathrand.IntN, Timeout: timeout})
}

// readSites reads a file of sites.
func readSites(file string) ([]hdl.Site, error) {
	data, err := disk.ReadSome(file, hdlclient.MaxSiteFile)
	if err != nil {
		return nil, err
	}
	list, err := hdlclient.ParseSites(data)
	if err != nil {
		return nil, refuse("resolve", stele.Invalid, "hdl-site-file.invalid", `the sites in "{file}": {cause}`, file, stele.Reason(err))
	}
	return list, nil
}
