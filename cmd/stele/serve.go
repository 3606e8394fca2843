package main

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stele-id/stele/cmd/stele/demo"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/server"

	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele/config"
)

// serveOptions are the flags of serve that are not settings.
type serveOptions struct {
	config string
	demo   bool
	once   bool
	bundle string
	keys   []string
}

func (p *program) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server: HTTP, the API and the DNS",
		Long: `Serve opens the registry and answers over HTTP: it redirects a client that asks for a
name, in any spelling, to what the name stands for. When it is ready, it prints its
addresses. It logs to standard error.

With --store the registry is in a PostgreSQL database, which 'stele store migrate' has
prepared, and several servers can use it.

With --https serve also answers with TLS and HTTP/2. The certificate comes from files,
which serve reads again when they change, or by ACME from a CA such as Let's Encrypt.

Settings come from flags, from the environment (--log-level is STELE_LOG_LEVEL) and from
the file that --config names; 'stele config list' lists them.

On SIGTERM, or Ctrl-C, serve ends without losing a request: /readyz answers 503, serve
accepts no new connections, and completes the requests in progress. A second signal ends
it at once. On SIGHUP it reopens its log file and looks for newer certificates.

With --bundle serve answers for the names of a bundle (see 'stele bundle') as they were
when it was made: a frozen archive, for reading only. It checks all of the bundle first,
with --key against the key of the registry that made it, and then makes a registry of it
in a temporary folder, or in the folder that --data names: there the next start finds it,
and is quick. Sign-in is off, and nothing is written, counted or sent.

With --demo serve fills a temporary registry with names of all kinds, and prints
commands to try. The demo needs no network.`,
		Example: `  stele serve
  stele serve --store postgres://stele@db1,db2,db3/stele?target_session_attrs=read-write
  stele serve --data /var/lib/stele --http :80 --base https://id.example.org --metrics 127.0.0.1:9180
  stele serve --http :80 --https :443 --acme-domain id.example.org --redirect-https
  stele serve --config /etc/stele/stele.toml --log-format json
  stele serve --bundle theirs.tar --key names.example.org/.log+f3ed7f9b+AQ... --http :80
  stele serve --demo`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.once && !o.demo {
				return usage.Errorf(cmd, "flag.once-without-demo", "--once goes with --demo")
			}
			return p.serve(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", os.Getenv(configVariable), "configuration `file` in TOML (environment: STELE_CONFIG)")
	flags.BoolVar(&o.demo, "demo", false, "serve a small registry of examples, and print commands to try")
	flags.StringVar(&o.bundle, "bundle", "", "serve this `file`, a bundle, for reading only")
	flags.StringArrayVar(&o.keys, "key", nil, "with --bundle: public `key` of the log of the registry that made it, or a file with such keys; may be given more than once")
	flags.BoolVar(&o.once, "once", false, "with --demo: run all commands, print them with their output, and exit")
	settingFlags(cmd, "data", "store", "purl-host", "checked", "secret-key-file")
	// These are completed as files.
	_ = cmd.RegisterFlagCompletionFunc("bundle", usage.Files)
	_ = cmd.RegisterFlagCompletionFunc("key", usage.Files)
	_ = cmd.RegisterFlagCompletionFunc("config", cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt))
	return usage.NeverFiles(cmd)
}

// serve is the verb.
func (p *program) serve(cmd *cobra.Command, o serveOptions) error {
	c := config.Load(o.config, os.Environ(), givenSettings(cmd.Flags()))
	for _, q := range slices.Concat(c.Problems, c.Warnings) {
		fmt.Fprintln(p.stderr, q)
	}
	if err := configError(c); err != nil {
		return err
	}
	if err := o.bundleServed(cmd, c); err != nil {
		return err
	}
	var anyPort []string
	if o.demo {
		if c.Origin("store") == config.Flag {
			return usage.Errorf(cmd, "flag.store-with-demo", "the demo has a folder of its own; leave --store out")
		}
		anyPort = demo.Configure(c)
	}
	p.create, p.named = true, c.Origin("data") != config.Default || o.demo
	p.data, p.store, p.config.PURLHosts, p.config.CheckedShoulders = c.Data, c.Store, c.PURLHosts, c.Checked
	p.secretFile = c.SecretKeyFile
	p.settleSecrets()
	if c.Host != "" && !slices.Contains(p.config.PURLHosts, c.Host) {
		p.config.PURLHosts = append(slices.Clone(p.config.PURLHosts), c.Host)
	}
	schemes, err := p.schemes(cmd)
	if err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	running, hurry, stop := endings(cmd.Context())
	defer stop()
	run := server.Options{
		Config: c, Schemes: schemes, Version: about().Version, Stderr: p.stderr, Hangups: hangups, AnyPort: anyPort,
		FirstAccess: p.showLink, Ready: p.announce,
	}
	if o.bundle != "" {
		return p.serveBundle(cmd, running, hurry, run, o)
	}
	if !o.demo {
		return p.runServer(running, hurry, run)
	}
	return p.serveDemo(running, hurry, run, o.once)
}

// runServer runs a server on the registry that the flags name.
func (p *program) runServer(running, hurry context.Context, o server.Options) error {
	o.Place, o.Open = p.place(), p.openOptions(p.logger(), resolver.Options{})
	o.MakeSecretKey = !o.Place.IsDatabase() || p.secretFile != ""
	return server.Run(running, hurry, o)
}

// serveDemo runs a server on the registry of the demo.
func (p *program) serveDemo(running, hurry context.Context, o server.Options, once bool) error {
	named := ""
	if o.Config.Origin("data") == config.Flag { // a folder that the environment names for all verbs does not count
		named = p.data
	}
	folder, remove, err := demo.Folder(named)
	if err != nil {
		return err
	}
	defer remove()
	p.data = folder
	if p.secrets, err = demo.Secrets(); err != nil {
		return err
	}
	d := &demo.Demo{Now: p.now, Stdout: p.stdout, Stele: func(ctx context.Context, out io.Writer, args ...string) int {
		stele := program{stdin: strings.NewReader(""), stdout: out, stderr: out, now: p.now, config: all.Config{Now: p.now}}
		return stele.run(ctx, args)
	}}
	defer d.Close()
	o.OwnAddress, o.Examples, o.Prepare, o.Demo = true, demo.Examples(), d.Prepare, demo.User
	o.Ready = func(at server.Addresses) error {
		if err := errors.Join(d.Ready(at), p.announce(at)); err != nil {
			return err
		}
		if !once && !p.json {
			d.Print(p.data)
		}
		return nil
	}
	if once {
		o.While = d.Try
	}
	return p.runServer(running, hurry, o)
}

// announce says where the server answers: on standard output a line for each address, or
// one object.
func (p *program) announce(at server.Addresses) error {
	if p.json {
		addresses := map[string]string{"http": at.HTTP}
		for name, address := range map[string]string{"https": at.HTTPS, "metrics": at.Metrics, "dns": strings.Join(at.DNS, ","), "dns-tls": strings.Join(at.DNSTLS, ","), "hdl": strings.Join(at.Handle, ",")} {
			if address != "" {
				addresses[name] = address
			}
		}
		return p.printObject(addresses)
	}
	lines := "serving " + at.HTTP + "\n"
	if at.HTTPS != "" {
		lines += "serving " + at.HTTPS + "\n"
	}
	for _, address := range at.DNS {
		lines += "dns " + address + "\n"
	}
	for _, address := range at.DNSTLS {
		lines += "dns-tls " + address + "\n"
	}
	for _, address := range at.Handle {
		lines += "hdl " + address + "\n"
	}
	if at.Metrics != "" {
		lines += "metrics " + at.Metrics + "/metrics\n"
	}
	return p.say("%s", lines)
}

// showLink prints the one-time link of the first administrator, which is not in the log.
func (p *program) showLink(user, link string) {
	fmt.Fprintf(p.stderr, `
  ------------------------------------------------------------------------
  This registry had no users. There is one now: %[1]s, an administrator.
  To sign in, %[1]s opens this link in a browser, once and within a day:

      %[3]s

  Programs need a token. %[1]s makes one there. While the server is
  stopped, the owner of the registry makes one here, or another link:

      stele token create %[1]s %[2]s
      stele user link %[1]s %[2]s
  ------------------------------------------------------------------------

`, user, printable(p.place().Flag()), link)
}

// endings returns two contexts: the first signal to end, SIGTERM or Ctrl-C, ends
// one, and the second signal the other. A third one kills the process as usual.
func endings(parent context.Context) (running, hurry context.Context, stop func()) {
	running, stopRunning := context.WithCancel(parent)
	hurry, stopWaiting := context.WithCancel(context.WithoutCancel(parent))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for _, end := range []func(){stopRunning, stopWaiting} {
			select {
			case <-signals:
				end()
			case <-done:
				return
			}
		}
		signal.Stop(signals)
	}()
	return running, hurry, func() {
		signal.Stop(signals)
		close(done)
		stopRunning()
		stopWaiting()
	}
}

// settingFlags gives a command the flags of all settings, except those that every verb
// has.
func settingFlags(cmd *cobra.Command, inherited ...string) {
	list := config.All()
	for i := range list {
		s := &list[i]
		if slices.Contains(inherited, s.Name) {
			continue
		}
		flag := cmd.Flags().VarPF(&settingFlag{setting: s, text: s.Usual}, s.Name, "", s.What)
		switch {
		case s.IsBool():
			flag.NoOptDefVal = "true"
			usage.Choices(cmd, s.Name, "true", "false")
		case s.Choices != nil:
			usage.Choices(cmd, s.Name, s.Choices...)
		case s.IsFile():
			_ = cmd.RegisterFlagCompletionFunc(s.Name, usage.Files)
		case s.IsFolder():
			_ = cmd.RegisterFlagCompletionFunc(s.Name, usage.Folders)
		}
	}
}

// settingFlag is the value of a flag. A flag of a list or a table may be repeated.
type settingFlag struct {
	setting *config.Setting
	text    string
	given   bool
}

func (f *settingFlag) String() string { return f.text }

// Type is what cobra's help prints after the name.
func (f *settingFlag) Type() string {
	switch {
	case f.setting.IsBool():
		return "bool" // so that it may stand alone
	case f.setting.Repeats():
		return f.setting.Word()
	}
	return strings.ToLower(f.setting.Word())
}

func (f *settingFlag) Set(text string) error {
	if _, err := f.setting.Read(text); err != nil {
		return err
	}
	if f.given && f.setting.Repeats() {
		text = f.text + " " + text
	}
	f.text, f.given = text, true
	return nil
}

// givenSettings returns the settings among the flags that were given.
func givenSettings(flags *pflag.FlagSet) map[string]any {
	given := map[string]any{}
	flags.Visit(func(flag *pflag.Flag) {
		if config.Find(flag.Name) == nil {
			return
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			given[flag.Name] = list.GetSlice()
			return
		}
		given[flag.Name] = flag.Value.String()
	})
	return given
}
