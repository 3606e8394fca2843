package config

import (
	"crypto/x509"
	"os"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mail"
)

var senderKind = kind{"address", textForm, orNothing(readSender)}

func readSender(_ *Setting, text string) (any, error) {
	s := mail.Settings{Server: "localhost:25", Security: mail.NoTLS, From: text}
	return text, s.Validate()
}

var scheduleKind = kind{"day and time", textForm, orNothing(readSchedule)}

func readSchedule(_ *Setting, text string) (any, error) {
	s, err := mail.ParseSchedule(text)
	return s.String(), err
}

// Digests returns when digests are sent; false if none is.
func (v *Values) Digests() (mail.Schedule, bool) {
	s, err := mail.ParseSchedule(v.MailDigest)
	return s, err == nil && v.MailServer != ""
}

// checkMail checks the settings of mail against each other.
func (c *Config) checkMail() {
	if c.MailServer == "" {
		for name, value := range map[string]string{"mail-user": c.MailUser, "mail-password-file": c.MailPassword, "mail-from": c.MailFrom, "mail-reply-to": c.MailReplyTo, "mail-root": c.MailRoot} {
			if value != "" {
				c.Wrong(name, "config.mail-server-missing", "no mail is sent without a server; set mail-server")
			}
		}
		return
	}
	if c.MailFrom == "" {
		c.Wrong("mail-server", "config.mail-from-missing", "mail needs a sender; set mail-from")
		return
	}
	if c.Base == "" {
		c.Wrong("mail-server", "config.mail-without-base", "links in mail need the public address of the server; set base")
	}
	if (c.MailUser == "") != (c.MailPassword == "") {
		c.Wrong("mail-server", "config.mail-sign-in-incomplete", "signing in at the mail server needs a name and a password; set both mail-user and mail-password-file, or neither")
	}
	s := mail.Settings{Server: c.MailServer, Security: mail.Security(c.MailSecurity), From: c.MailFrom, ReplyTo: c.MailReplyTo}
	if err := s.Validate(); err != nil {
		c.Wrong("mail-server", "", "{cause}", err)
	}
}

// Mail returns the settings of mail, with the password and the roots, which it reads from their files. It
// must not be called if there is no mail server.
func (v *Values) Mail() (s mail.Settings, err error) {
	s = mail.Settings{Server: v.MailServer, Security: mail.Security(v.MailSecurity), User: v.MailUser, From: v.MailFrom, ReplyTo: v.MailReplyTo}
	if v.MailPassword != "" {
		if s.Password, err = readSecretFile(mailSecretTexts(), v.MailPassword); err != nil {
			return mail.Settings{}, err
		}
	}
	if v.MailRoot != "" {
		text, err := os.ReadFile(v.MailRoot)
		s.Roots = x509.NewCertPool()
		if err != nil || !s.Roots.AppendCertsFromPEM(text) {
			return mail.Settings{}, stele.Messagef("config.mail-root-unreadable", "there is no certificate in {file} that can be read; it should have the root certificates of the mail server in PEM", v.MailRoot)
		}
	}
	return s, s.Validate()
}

func mailSecretTexts() secretTexts {
	return secretTexts{
		func(error) error {
			return stele.Messagef("config.mail-password-too-long", "the file of the password at the mail server has more than {most} bytes; it must hold the password alone", maxSecret)
		},
		func(cause error) error {
			return stele.Messagef("config.mail-password-unreadable", "the password at the mail server can't be read: {cause}", cause)
		},
		func(error) error {
			return stele.Messagef("config.mail-password-empty", "the file of the password at the mail server is empty; write the password into it")
		},
	}
}
