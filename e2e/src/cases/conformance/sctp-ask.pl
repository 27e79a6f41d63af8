# Asks a server over SCTP, each time on an association of its own. Prints for each "answer SERVER LOCAL REMOTE SENDER",
# where LOCAL and REMOTE are what the server sees and SENDER is what this end sees of itself, or "refused", or "lost".
# Usage: perl sctp-ask.pl SOURCE DESTINATION PORT COUNT WAIT-SECONDS; SOURCE may be "-". IPv4 only.
use strict;
use warnings;
use Errno qw(ECONNREFUSED EINPROGRESS);
use Fcntl;
use Socket;

my ($source, $destination, $port, $count, $wait) = @ARGV;

sub text_of {
    my ($port, $address) = unpack_sockaddr_in($_[0]);
    return inet_ntoa($address) . ":$port";
}

sub wait_for {
    my ($socket, $writable) = @_;
    my $ready = "";
    vec($ready, fileno($socket), 1) = 1;
    return $writable ? select(undef, $ready, undef, $wait) : select($ready, undef, undef, $wait);
}

sub ask {
    socket(my $socket, PF_INET, SOCK_STREAM, 132) or die "sctp socket: $!\n";
    # IP_RECVERR: without it "port unreachable" ends no attempt to connect.
    setsockopt($socket, 0, 11, pack("i", 1)) or die "setsockopt: $!\n";
    if ($source ne "-") {
        bind($socket, pack_sockaddr_in(0, inet_aton($source))) or die "bind $source: $!\n";
    }
    fcntl($socket, F_SETFL, fcntl($socket, F_GETFL, 0) | O_NONBLOCK);
    if (!connect($socket, pack_sockaddr_in($port, inet_aton($destination)))) {
        return "refused" if $! == ECONNREFUSED;
        die "connect: $!\n" unless $! == EINPROGRESS;
        return "lost" unless wait_for($socket, 1);
        my $error = unpack("i", getsockopt($socket, SOL_SOCKET, SO_ERROR));
        return "refused" if $error == ECONNREFUSED;
        return "error $error" if $error;
    }
    my $sender = text_of(getsockname($socket));
    return "lost" unless wait_for($socket, 0);
    my $read = sysread($socket, my $line, 256);
    return "error " . ($! + 0) unless defined $read;
    return "lost" if $read == 0;
    chomp $line;
    return "answer $line $sender";
}

print ask(), "\n" for 1 .. $count;
