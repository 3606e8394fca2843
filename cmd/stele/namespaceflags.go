package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar/minting"
)

// minterFlags are the settings of a minter. Only what was given counts.
type minterFlags struct {
	owner *cobra.Command
	given stele.Minter
	looks bool // read only: do not make a namespace
}

// addIBI gives a command the flags of an IBI server.
func (f *minterFlags) addIBI(cmd *cobra.Command) {
	f.owner = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.given.Host, "host", "", "fully qualified host `name` of the server, for repository names")
	flags.Uint16Var(&f.given.Port, "port", minting.DefaultHostPort, "port that goes with --host")
	flags.StringVar(&f.given.IP, "ip", "", "IP `address` of the server, for IBIps")
	flags.Uint16Var(&f.given.IPPort, "ip-port", minting.DefaultIPPort, "port that goes with --ip")
	flags.BoolVar(&f.given.AllowPrivate, "allow-private", false, "allow an address that others have too: names from it are unique in your network only")
	flags.StringVar(&f.given.Granularity, "granularity", "", "distance between two dates: 1m, 1s, 100ms and so on down to 1as (default 1s)")
	choices(cmd, "granularity", "1m", "1s", "100ms", "10ms", "1ms", "1us", "1ns")
}

// addNOID gives a command the flags of a template.
func (f *minterFlags) addNOID(cmd *cobra.Command) {
	f.owner = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.given.Template, "template", "", "NOID `template`: .reedeedk makes names in quasi-random order that end in a check character, .zd counts")
	flags.Uint64Var(&f.given.Seed, "seed", 0, "`number` that decides in which order the names of a template come that begins with r (default: a random one, so that they can't be foretold)")
}

// apply changes a minter as the flags say.
func (f *minterFlags) apply(m *stele.Minter) { minting.Configure(m, &f.given, f.owner.Flags().Changed) }

// namespaceFlags are the flags of ns add and ns set.
type namespaceFlags struct {
	cmd    *cobra.Command
	given  stele.Namespace
	minter minterFlags
	persistenceFlags
}

func (f *namespaceFlags) add(cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	flags.StringVar(&f.given.Owner, "owner", "", "`who` may write in it, beside administrators")
	flags.StringVar(&f.given.Title, "title", "", "what it is, for people")
	flags.StringVar((*string)(&f.minter.given.Kind), "minter", "", "how new names are made: ibi, noid, pilin or uuid (default: not at all)")
	f.minter.addIBI(cmd)
	f.minter.addNOID(cmd)
	flags.Uint32Var(&f.given.TTL, "ttl", 0, "for how many `seconds` others may keep an answer, where the target does not say")
	flags.IntVar(&f.given.Status, "status", 0, "HTTP status of redirects, where the target does not say")
	f.persistenceFlags.add(cmd)
	flags.StringArrayVar(&f.given.Hosts, "host-allowed", nil, "`host` to which targets may point, or .example.org for all below it; may be repeated (default: any)")
	flags.StringArrayVar(&f.given.Protocols, "protocol", nil, "protocol of targets' URLs; may be repeated (default: http, https and ftp)")
	flags.StringVar(&f.given.Delegate, "delegate", "", "`URL` of another resolver that answers instead, with {id} or {rest} where the name belongs")
	flags.BoolVar(&f.given.Checked, "check", false, "names end in a NOID check character: mistyped ones are refused")
	flags.BoolVar(&f.given.Passthrough, "passthrough", false, "append what follows a registered name to the URLs of its targets, as if all of them were partial: in ARKs and PURLs x12 leads to the target of x1, with a 2 behind it")
	flags.Uint64Var(&f.given.Quota, "quota", 0, "how many names there may be, aliases included (0: no limit)")
	choices(cmd, "minter", stele.MinterIBI, stele.MinterNOID, stele.MinterPILIN, stele.MinterUUID)
	choices(cmd, "protocol", "https", "http", "ftp", "ftps", "sftp", "rsync", "rtsp")
	choices(cmd, "status", "301", "302", "303", "307", "308")
}

// apply changes a namespace as the flags say.
func (f *namespaceFlags) apply(ns *stele.Namespace) {
	for flag, set := range map[string]func(){
		"owner":        func() { ns.Owner = f.given.Owner },
		"title":        func() { ns.Title = f.given.Title },
		"ttl":          func() { ns.TTL = f.given.TTL },
		"status":       func() { ns.Status = f.given.Status },
		"host-allowed": func() { ns.Hosts = withoutEmpty(f.given.Hosts) },
		"protocol":     func() { ns.Protocols = withoutEmpty(f.given.Protocols) },
		"delegate":     func() { ns.Delegate = f.given.Delegate },
		"check":        func() { ns.Checked = f.given.Checked },
		"passthrough":  func() { ns.Passthrough = f.given.Passthrough },
		"quota":        func() { ns.Quota = f.given.Quota },
	} {
		if f.cmd.Flags().Changed(flag) {
			set()
		}
	}
	f.minter.apply(&ns.Minter)
	f.persistenceFlags.apply(&ns.Persistence)
}

// withoutEmpty returns a list without empty texts: an empty one removes all.
func withoutEmpty(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
}
