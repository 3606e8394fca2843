package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/cmd/stele/usage"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/transparency"
	"github.com/stele-id/stele/transparency/witness"
)

// witnessFlags are those of log witness.
type witnessFlags struct {
	listen, key, state, name string
	logs                     []string
	fresh                    bool
}

func (p *program) logWitnessCommand() *cobra.Command {
	var f witnessFlags
	cmd := &cobra.Command{
		Use:   "witness --listen ADDR --key FILE --state FILE --log KEY",
		Short: "Co-sign the checkpoints of other registries",
		Long: `Witness listens for the checkpoints of logs, and co-signs a checkpoint if the log has only
grown since the last one: so a registry can't show one history to some readers, and another one to
the rest. It follows C2SP tlog-witness, and co-signs the logs of other programs, too.

A log is named by its public key, which a registry shows at /.log/key. Repeat --log for other logs,
and for the keys of a log whose key was rolled. Give the operators of these registries the URL of the
witness and its public key, for their setting log-witnesses.

The first time, witness makes the private key, in a file that only its owner may read, with the name
that --name gives: a URL without its scheme, such as witness.example.net. What it has co-signed is in the
file --state. Keep copies of the key. Never put back an old copy of the state: a witness that forgets can
be shown another history.

It answers by HTTP; let a web server before it do TLS.`,
		Example: `  stele log witness --listen 127.0.0.1:8090 --name witness.example.net --key witness.key --state witness.json --log id.example.org/.log+456b37fc+ASe6TBEOKNGNRtk+90u7D8Myz1rR+ZMDO8+8cmVzuOq+
  stele log witness --listen 127.0.0.1:8090 --key witness.key --state witness.json --log id.example.org/.log+456b37fc+ASe6TBEOKNGNRtk+90u7D8Myz1rR+ZMDO8+8cmVzuOq+`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.logWitness(cmd, &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "", "`address` and port at which the witness answers")
	flags.StringVar(&f.key, "key", "", "`file` of the private key; witness makes it if it is not there")
	flags.StringVar(&f.state, "state", "", "`file` of what was co-signed")
	flags.StringVar(&f.name, "name", "", "`name` of the witness, for a new key")
	flags.StringArrayVar(&f.logs, "log", nil, "public `key` of a log that is co-signed; may be repeated")
	flags.BoolVar(&f.fresh, "fresh", false, "begin anew although the key is there and the state is not")
	for _, name := range []string{"key", "state"} { // completed as files
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
	}
	return usage.NeverFiles(onFolder(cmd))
}

// logWitness is the verb.
func (p *program) logWitness(cmd *cobra.Command, f *witnessFlags) error {
	if f.listen == "" || f.key == "" || f.state == "" || len(f.logs) == 0 {
		return usage.Errorf(cmd, "flag.witness-incomplete", "give --listen, --key, --state and at least one --log")
	}
	o := witness.Options{Now: p.now, Log: slog.New(slog.NewTextHandler(p.stderr, nil))}
	for _, text := range f.logs {
		k, err := transparency.ParsePublicKey(text)
		if err != nil {
			return err
		}
		o.Logs = append(o.Logs, k)
	}
	made, err := f.readKey(cmd, &o.Key)
	if err != nil {
		return err
	}
	if o.File, err = witness.OpenFile(f.state, made || f.fresh); err != nil {
		return err
	}
	defer o.File.Close()
	w, err := witness.New(o)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return refuse("witness", stele.Unavailable, "log.witness-listen", "can't listen at {address}: {cause}", f.listen, err)
	}
	at := "http://" + listener.Addr().String()
	if p.json {
		err = p.printObject(map[string]string{"url": at, "key": o.Key.Public().String()})
	} else {
		err = p.say("witness %s\nkey %s\n", at, o.Key.Public())
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return serveWitness(cmd, listener, w, o.Log)
}

// readKey reads the private key, or makes it.
func (f *witnessFlags) readKey(cmd *cobra.Command, key *transparency.WitnessKey) (made bool, err error) {
	const maxKey = 4 << 10
	text, err := disk.ReadSome(f.key, maxKey)
	if err == nil {
		if *key, err = transparency.ParseWitnessKey(string(text)); err == nil && f.name != "" && f.name != key.Name {
			err = usage.Errorf(cmd, "flag.witness-name-other", `the key in {file} has the name "{name}"; leave --name out, or name another file`, f.key, key.Name)
		}
		return false, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, disk.FileError(err)
	}
	if !transparency.IsWitnessName(f.name) {
		return false, usage.Errorf(cmd, "flag.witness-name", "{file} is not there yet; give --name, a URL without its scheme such as witness.example.net, and it is made", f.key)
	}
	if _, err := os.Lstat(f.state); err == nil && !f.fresh {
		return false, refuse("witness", stele.Conflict, "log.witness-state-without-key", "{state} is there, and the key {file} is not; put the key back from its copy, or name another state", f.state, f.key)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return false, err
	}
	*key = transparency.WitnessKey{Name: f.name, Private: private}
	if err := disk.CreatePrivate(f.key, []byte(key.String()+"\n")); err != nil {
		return false, disk.FileError(err)
	}
	return true, nil
}

// witnessConnections is how many connections of one address a witness answers.
const witnessConnections = 1000

// serveWitness answers until the process is told to end.
func serveWitness(cmd *cobra.Command, listener net.Listener, w http.Handler, log *slog.Logger) error {
	running, hurry, stop := endings(cmd.Context())
	defer stop()
	s := httpd.NewServer(w, httpd.ServerOptions{Connections: witnessConnections, Log: log})
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	select {
	case err := <-failed:
		return refuse("witness", stele.Unavailable, "server.failed", "the server can't go on: {cause}", err)
	case <-running.Done():
	}
	const grace = 10 * time.Second
	ctx, cancel := context.WithTimeout(hurry, grace)
	defer cancel()
	return s.Shutdown(ctx)
}
