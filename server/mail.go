package server

import (
	"context"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/registry"
)

// openMail reads the settings of mail. It does not ask the mail server: one that is down does not stop this server.
func (s *server) openMail() error {
	if s.MailServer == "" {
		return nil
	}
	settings, err := s.Config.Mail()
	if err == nil {
		s.transport, err = mail.NewTransport(settings)
	}
	if err != nil {
		return refuse("serve", stele.Invalid, "", "{cause}", err)
	}
	return nil
}

// openQueue returns the mail of a registry that is to be sent; nil if no mail is sent.
func (s *server) openQueue(r *registry.Registry) *mail.Queue {
	if s.transport == nil {
		return nil
	}
	return mail.NewQueue(mail.Options{Registrar: r.Registrar, Send: s.transport.Send, From: s.MailFrom, Now: s.now, Log: s.log})
}

// sendMail sends mail until the context ends.
func (s *server) sendMail(ctx context.Context, f *generation) {
	if f.mail != nil && !strings.HasPrefix(s.Base, "https://") {
		s.log.Warn("links in mail are not encrypted, because base begins with http")
	}
	if f.mail != nil {
		f.mail.Run(ctx)
	}
}
