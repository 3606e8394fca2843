package server

import (
	"context"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/mail/digest"
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
func (s *server) openQueue(f *generation) *mail.Queue {
	if s.transport == nil {
		return nil
	}
	return mail.NewQueue(mail.Options{Registrar: f.registry.Registrar, Send: s.transport.Send, From: s.MailFrom, Now: s.now, Log: s.log,
		Renew: func(ctx context.Context, l *mail.Letter) (bool, error) {
			if f.digests == nil { // none is sent any more
				return false, nil
			}
			return f.digests.Renew(ctx, l)
		}})
}

// openDigests returns what sends digests of a registry; nil if none is sent. Other sections are added here.
func (s *server) openDigests(f *generation) (*digest.Sender, error) {
	at, ok := s.Digests()
	if f.mail == nil || !ok {
		return nil, nil
	}
	writer, err := mail.NewWriter(s.SiteName, s.Base)
	if err != nil {
		return nil, err
	}
	languages, err := s.languages()
	if err != nil {
		return nil, err
	}
	r := f.registry
	return digest.New(digest.Options{Registrar: r.Registrar, Directory: r.Directory, Queue: f.mail, Writer: writer, Languages: languages, Schedule: at, Base: s.Base, Now: s.now, Log: s.log,
		Sources: []digest.Source{
			digest.Proposals(r.Registrar),
			digest.Decisions(r.Registrar, s.schemes),
			digest.Jobs(f.jobs),
			digest.Zones(r.Registrar, NewKeys(r, s.now).ZoneKeys, s.now),
			digest.Links(r.Registrar, f.links),
			digest.Changes(r.Registrar),
		}}), nil
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
