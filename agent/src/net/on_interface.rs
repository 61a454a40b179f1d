//! Sockets for name lookups that leave by one interface: while several are on trial, each asks its own servers, and a
//! name server with a link-local address, as routers like to advertise, is one of that link.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use hickory_resolver::net::runtime::iocompat::AsyncIoTokioAsStd;
use hickory_resolver::net::runtime::{RuntimeProvider, TokioHandle, TokioRuntimeProvider, TokioTime};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::time::timeout;

/// How long a connection to a name server may take.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// The tokio runtime, with sockets bound to one interface.
#[derive(Clone)]
pub(super) struct OnInterface {
    inner: TokioRuntimeProvider,
    interface: String,
}

impl OnInterface {
    pub(super) fn new(interface: &str) -> Self {
        Self { inner: TokioRuntimeProvider::default(), interface: interface.to_owned() }
    }
}

type Opening<T> = Pin<Box<dyn Send + Future<Output = io::Result<T>>>>;

impl RuntimeProvider for OnInterface {
    type Handle = TokioHandle;
    type Timer = TokioTime;
    type Udp = UdpSocket;
    type Tcp = AsyncIoTokioAsStd<TcpStream>;

    fn create_handle(&self) -> Self::Handle {
        self.inner.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        own: Option<SocketAddr>,
        wait: Option<Duration>,
    ) -> Opening<Self::Tcp> {
        let interface = self.interface.clone();
        Box::pin(async move {
            let socket = if server.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.bind_device(Some(interface.as_bytes()))?;
            if let Some(own) = own {
                socket.bind(own)?;
            }
            let stream = timeout(wait.unwrap_or(CONNECT_WAIT), socket.connect(server)).await;
            Ok(AsyncIoTokioAsStd(stream.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??))
        })
    }

    fn bind_udp(&self, own: SocketAddr, _server: SocketAddr) -> Opening<Self::Udp> {
        let interface = self.interface.clone();
        Box::pin(async move {
            let socket = UdpSocket::bind(own).await?;
            socket.bind_device(Some(interface.as_bytes()))?;
            Ok(socket)
        })
    }
}
