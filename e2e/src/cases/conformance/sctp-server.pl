# Serves on SCTP ports, on kernels that have SCTP sockets: says its name and the sender it sees, and closes. Prints "ready" once
# it listens, and ends with its standard input. perl-base is all it takes. IPv4 only.
# Usage: perl sctp-server.pl NAME PORT...
use strict;
use warnings;
use Socket;

my ($name, @ports) = @ARGV;
my $sctp = 132;

sub text_of {
    my ($port, $address) = unpack_sockaddr_in($_[0]);
    return inet_ntoa($address) . ":$port";
}

my %listening;
for my $port (@ports) {
    socket(my $socket, PF_INET, SOCK_STREAM, $sctp) or die "sctp socket: $!\n";
    bind($socket, pack_sockaddr_in($port, INADDR_ANY)) or die "bind $port: $!\n";
    listen($socket, 64) or die "listen $port: $!\n";
    $listening{ fileno($socket) } = $socket;
}
$| = 1;
print "ready\n";
while (1) {
    my $ready = "";
    vec($ready, $_, 1) = 1 for (fileno(STDIN), keys %listening);
    select($ready, undef, undef, undef) > 0 or next;
    exit 0 if vec($ready, fileno(STDIN), 1);
    for my $number (grep { vec($ready, $_, 1) } keys %listening) {
        my $peer = accept(my $near, $listening{$number}) or next;
        syswrite($near, "$name " . text_of(getsockname($near)) . " " . text_of($peer) . "\n");
        close($near);
    }
}
