// Command provider is the OpenID provider of the tests: the example of zitadel/oidc, which checks
// clients, redirect URIs and PKCE as providers do. It has a module of its own, so that ours does
// not inherit what it needs.
//
// It is called with a port of loopback and the redirect URI of the server under test, and says at
// its standard output when it answers.
package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

// secret is that of the client, as test/deskoidc_test.go has it.
const secret = "known-to-the-client-alone"

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(port, redirect string) error {
	issuer := "http://localhost:" + port + "/"
	storage.RegisterClients(storage.WebClient("web", secret, redirect))
	handler := exampleop.SetupServer(issuer, storage.NewStorage(storage.NewUserStore(issuer)), slog.New(slog.DiscardHandler), false)
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}
	fmt.Println(issuer)
	return http.Serve(listener, handler)
}
