package server

import (
	"context"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/job"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/mail/digest"
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
	return DigestSender(f.registry, s.schemes, f.jobs, f.links, digest.Options{Queue: f.mail, Writer: writer, Languages: languages, Schedule: at, Base: s.Base, Now: s.now, Log: s.log}), nil
}

// DigestSender returns what makes digests of a registry that this process has open. The options lack the registry and the sections, which it
// adds.
func DigestSender(r *registry.Registry, schemes *stele.Schemes, jobs *job.Board, links digest.LinkChecker, o digest.Options) *digest.Sender {
	o.Registrar, o.Directory = r.Registrar, r.Directory
	o.Sources = []digest.Source{
		digest.Proposals(r.Registrar),
		digest.Decisions(r.Registrar, schemes),
		digest.Jobs(jobs),
		digest.Zones(r.Registrar, NewKeys(r, o.Now).ZoneKeys, o.Now),
		digest.Links(r.Registrar, links),
		digest.Changes(r.Registrar),
	}
	return digest.New(o)
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
