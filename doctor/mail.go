package doctor

import (
	"context"

	"github.com/stele-id/stele/mail"
)

// examineMail connects to the mail server, begins encryption and signs in, as for a mail. It sends none.
func examineMail(ctx context.Context, x *subject) {
	if x.Away || x.Config.MailServer == "" || len(x.Config.Problems) > 0 {
		return
	}
	settings, err := x.Config.Mail()
	if err != nil {
		x.problem("put it right; the server's user must be able to read the file", "", "{cause}", err)
		return
	}
	transport, err := mail.NewTransport(settings)
	if err == nil {
		err = transport.Check(ctx)
	}
	if err != nil {
		x.problem("see that mail-server, mail-security, mail-user and the password are those that its operator gave; a private certificate needs mail-root", "doctor.mail-refused", "no mail can be sent: {cause}", err)
		return
	}
	x.ok("doctor.mail-works", "the mail server {server} takes mail; 'stele mail test ADDRESS' sends one", settings.Server)
}
